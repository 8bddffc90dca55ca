#include "cuop/dist/exec/call.h"

#include <chrono>
#include <sstream>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/exec/redistribute.h"
#include "cuop/dist/exec/report.h"
#include "cuop/dist/header.h"

namespace cuop::dist {
namespace {

/// Executes, puts the result where the plan's last output says, and files the report.
DistTensor follow(const Operation& operation, const Plan& plan,
                  const std::vector<DistTensor>& inputs) {
  trace::Span span(cat(plan.op, " [", plan.strategy, ']'), "dist");
  span.add_bytes(plan.bytes());
  span.add_flops(plan.flops());
  const DistTensor made = operation.execute(plan, inputs);
  return moved_to(made, plan.outputs.back().sharding);
}

class Stopwatch {
 public:
  explicit Stopwatch(Communicator& comm) : comm_(comm), sent_before_(comm.bytes_sent()) {}

  void file_report(Plan plan) const {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    set_last_report({std::move(plan), comm_.bytes_sent() - sent_before_, elapsed.count()});
  }

 private:
  Communicator& comm_;
  int64_t sent_before_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Machine figures and plan hash as text that reads back to the same bits.
std::string write_note(const Machine& machine, uint64_t hash) {
  std::ostringstream out;
  out.precision(17);
  out << machine.flops << ' ' << machine.memory_bandwidth << ' ' << machine.link_bandwidth << ' '
      << machine.latency << ' ' << machine.message_overhead << ' ' << machine.memory << ' ' << hash;
  return out.str();
}

std::pair<Machine, uint64_t> read_note(const std::string& note) {
  Machine machine;
  uint64_t hash = 0;
  std::istringstream in(note);
  in >> machine.flops >> machine.memory_bandwidth >> machine.link_bandwidth >> machine.latency >>
      machine.message_overhead >> machine.memory >> hash;
  return {machine, hash};
}

std::vector<Placement> placements_on(const Operation& operation, const std::vector<Header>& headers,
                                     const Sharding& sharding) {
  std::vector<Placement> placements;
  for (size_t i = 0; i < headers.size(); ++i) {
    placements.push_back({operation.names.at(i), headers[i].shape, headers[i].dtype, sharding});
  }
  return placements;
}

std::string full_text(const Operation& operation, const CallOptions& options) {
  return options.strategy.empty() ? operation.text
                                  : cat(operation.text, ", strategy ", options.strategy);
}

}  // namespace

Machine local_machine() { return Machine::host(backend::thread_count()); }

DistTensor run_sharded(const Operation& operation, const std::vector<DistTensor>& inputs,
                       const CallOptions& options) {
  if (inputs.empty() || !inputs[0].is_defined()) {
    throw ExecutionError(
        cat(operation.text, ": a distributed tensor was expected, none was given"));
  }
  Communicator& comm = inputs[0].comm();
  std::string text = full_text(operation, options);
  for (const DistTensor& input : inputs) text += cat("; ", input.to_string());
  if (options.output) text += cat(" -> ", *options.output);
  const Stopwatch watch(comm);
  Plan plan;
  DistTensor result;
  run_together(
      comm, text,
      [&] {
        std::vector<Placement> placements;
        for (size_t i = 0; i < inputs.size(); ++i) {
          const DistTensor& input = inputs[i];
          if (!input.is_defined() || &input.comm() != &comm) {
            throw ExecutionError(cat(operation.text, ": ", operation.names.at(i),
                                     " lies on another communicator than ", operation.names[0]));
          }
          placements.push_back(
              {operation.names.at(i), input.shape(), input.dtype(), input.sharding()});
        }
        // The constants of Machine are the same everywhere; a local figure would not be.
        plan = operation.plan(placements, options.output, options.machine.value_or(Machine{}),
                              options.strategy);
      },
      [&] { result = follow(operation, plan, inputs); });
  watch.file_report(std::move(plan));
  return result;
}

Tensor run_rooted(const CommunicatorPtr& comm, const Operation& operation,
                  const std::vector<Tensor>& inputs, const CallOptions& options, int root) {
  const Sharding at_root = Sharding::on_rank(Mesh::line(comm->size()), root);
  const bool is_root = comm->rank() == root;
  const Stopwatch watch(*comm);
  Headers headers;
  Plan plan;
  Tensor result;
  run_together(
      *comm, cat(full_text(operation, options), ", input on rank ", root),
      [&] {
        if (!is_root) return;
        size_t count = inputs.size();
        while (count > 0 && !inputs[count - 1].is_defined()) --count;
        for (size_t i = 0; i < count; ++i) {
          if (!inputs[i].is_defined()) {
            throw ExecutionError(
                cat(operation.text, ": ", operation.names.at(i), " was not given on rank ", root));
          }
          headers.tensors.push_back(header_of(inputs[i]));
        }
        if (count == 0) {
          throw ExecutionError(
              cat(operation.text, ": ", operation.names.at(0), " was not given on rank ", root));
        }
        const Machine machine = options.machine.value_or(local_machine());
        plan = operation.plan(placements_on(operation, headers.tensors, at_root), at_root, machine,
                              options.strategy);
        headers.note = write_note(machine, plan.hash());
      },
      [&] {
        headers = broadcast_headers(*comm, headers, root);
        if (!is_root) {
          const auto [machine, hash] = read_note(headers.note);
          plan = operation.plan(placements_on(operation, headers.tensors, at_root), at_root,
                                machine, options.strategy);
          if (plan.hash() != hash) {
            throw CommunicationError(
                cat(operation.text, ": rank ", comm->rank(), " planned otherwise than rank ", root,
                    ": ", plan.to_string()),
                comm->rank());
          }
        }
        std::vector<DistTensor> parts;
        for (size_t i = 0; i < headers.tensors.size(); ++i) {
          const Header& header = headers.tensors[i];
          parts.emplace_back(comm, at_root, header.shape, header.dtype,
                             is_root ? inputs[i] : Tensor());
        }
        result = follow(operation, plan, parts).local();
      });
  watch.file_report(std::move(plan));
  return is_root ? result : Tensor();
}

}  // namespace cuop::dist
