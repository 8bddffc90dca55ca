#include "cuop/dist/exec/call.h"

#include <chrono>
#include <sstream>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/error.h"
#include "cuop/core/lru_cache.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/exec/redistribute.h"
#include "cuop/dist/exec/report.h"
#include "cuop/dist/header.h"
#include "cuop/ops/copy/copy.h"

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

/// Machine figures as text that reads back to the same bits.
std::string write_machine(const Machine& machine) {
  std::ostringstream out;
  out.precision(17);
  out << machine.flops << ' ' << machine.memory_bandwidth << ' ' << machine.link_bandwidth << ' '
      << machine.latency << ' ' << machine.message_overhead << ' ' << machine.memory;
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

/// A plan with its hash.
struct Planned {
  Plan plan;
  uint64_t hash = 0;
};

/// Plans, or returns the plan that the same arguments gave before: planners are pure functions, and
/// the operation's text holds every argument of its own.
std::shared_ptr<const Planned> planned(const Operation& operation, const CallOptions& options,
                                       const std::vector<Placement>& inputs,
                                       const std::optional<Sharding>& output,
                                       const Machine& machine) {
  thread_local LruCache<std::string, std::shared_ptr<const Planned>> known(128);
  std::string key = cat(full_text(operation, options), " | ", write_machine(machine));
  for (const Placement& input : inputs) {
    key += cat(" | ", input.dtype, input.shape, input.sharding);
  }
  if (output) key += cat(" -> ", *output);
  if (const auto* found = known.find(key)) return *found;
  const trace::Span span(cat("plan ", operation.text), "plan");
  Plan plan = operation.plan(inputs, output, machine, options.strategy);
  const uint64_t hash = plan.hash();
  const auto made = std::make_shared<const Planned>(Planned{std::move(plan), hash});
  known.put(key, made);
  return made;
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
  std::shared_ptr<const Planned> made;
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
        made = planned(operation, options, placements, options.output,
                       options.machine.value_or(Machine{}));
      },
      [&] { result = follow(operation, made->plan, inputs); });
  watch.file_report(made->plan);
  return result;
}

Tensor run_rooted(const CommunicatorPtr& comm, const Operation& operation,
                  const std::vector<Tensor>& inputs, const CallOptions& options, int root) {
  const Sharding at_root =
      make_together(*comm, cat(full_text(operation, options), ", input on rank ", root),
                    [&] { return Sharding::on_rank(Mesh::line(comm->size()), root); });
  const bool is_root = comm->rank() == root;
  const Stopwatch watch(*comm);
  Headers headers;
  std::vector<Tensor> on_root;
  std::shared_ptr<const Planned> made;
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
          on_root.push_back(on_host(inputs[i]));
        }
        if (count == 0) {
          throw ExecutionError(
              cat(operation.text, ": ", operation.names.at(0), " was not given on rank ", root));
        }
        const Machine machine = options.machine.value_or(local_machine());
        made = planned(operation, options, placements_on(operation, headers.tensors, at_root),
                       at_root, machine);
        headers.note = cat(write_machine(machine), ' ', made->hash);
      },
      [&] {
        headers = broadcast_headers(*comm, headers, root);
        if (!is_root) {
          const auto [machine, hash] = read_note(headers.note);
          made = planned(operation, options, placements_on(operation, headers.tensors, at_root),
                         at_root, machine);
          if (made->hash != hash) {
            throw CommunicationError(
                cat(operation.text, ": rank ", comm->rank(), " planned otherwise than rank ", root,
                    ": ", made->plan.to_string()),
                comm->rank());
          }
        }
        std::vector<DistTensor> parts;
        for (size_t i = 0; i < headers.tensors.size(); ++i) {
          const Header& header = headers.tensors[i];
          parts.emplace_back(comm, at_root, header.shape, header.dtype,
                             is_root ? on_root[i] : Tensor());
        }
        result = follow(operation, made->plan, parts).local();
        if (is_root) result = to_device(result, inputs[0].device());
      });
  watch.file_report(made->plan);
  return is_root ? result : Tensor();
}

}  // namespace cuop::dist
