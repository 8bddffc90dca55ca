#include "cuop/dist/exec/call_frame.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/exec/call_watch.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/exec/planned.h"
#include "cuop/dist/exec/rank_machine.h"
#include "cuop/dist/exec/root_note.h"
#include "cuop/dist/header.h"
#include "cuop/dist/rank_device.h"
#include "cuop/dist/strict.h"
#include "cuop/ops/copy/copy.h"

namespace cuop::dist {
namespace {

/// Executes, and puts the result where the plan's last output says.
DistTensor follow(const Operation& operation, const Plan& plan,
                  const std::vector<DistTensor>& inputs, CallWatch& watch) {
  const Device device = inputs[0].device();
  const CallWatch::Work time(watch, !operation.is_on_host && !device.is_cpu());
  const auto run = [&] {
    if (!operation.is_on_host || device.is_cpu()) return operation.execute(plan, inputs);
    std::vector<DistTensor> on_host;
    for (const DistTensor& input : inputs) on_host.push_back(on_device(input, kCpu));
    return on_device(operation.execute(plan, on_host), device);
  };
  return moved_to(run(), plan.outputs.back().sharding);
}

/// A call that takes long is worth knowing its ranks for.
bool is_worth_measuring(const Communicator& comm, const Plan& plan) {
  return comm.size() > 1 && plan.seconds() > kWorthMeasuring;
}

bool has_elements(const DistTensor& x) { return !x.box().empty(); }

/// The inputs as they are; parts without elements go where the others are. DeviceError unless this
/// rank has all of them on one device.
std::vector<DistTensor> on_one_device(const Operation& operation,
                                      const std::vector<DistTensor>& inputs) {
  const auto first = std::find_if(inputs.begin(), inputs.end(), has_elements);
  if (first == inputs.end()) return inputs;
  std::vector<DistTensor> result;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DistTensor& input = inputs[i];
    const bool is_there = input.device() == first->device();
    if (!is_there && has_elements(input)) {
      throw DeviceError(cat(operation.text, ": rank ", input.comm().rank(), " has ",
                            operation.names[static_cast<size_t>(first - inputs.begin())], " on ",
                            first->device(), ", ", operation.names.at(i), " on ", input.device(),
                            "; they must be on one device"));
    }
    result.push_back(is_there ? input : on_device(input, first->device()));
  }
  return result;
}

/// The inputs of a call on the rank that has them, on the first one's device, without those left
/// out.
std::vector<Tensor> given_on(int root, const Operation& operation, std::vector<Tensor> inputs) {
  while (inputs.size() > 1 && !inputs.back().is_defined()) inputs.pop_back();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_defined()) {
      throw ExecutionError(
          cat(operation.text, ": ", operation.names.at(i), " was not given on rank ", root));
    }
    check_usable(inputs[i]);
    const Device device = inputs[0].device();
    if (inputs[i].device() != device) inputs[i] = to_device(inputs[i], device);
  }
  return inputs;
}

/// What the rank that has the inputs plans with: what it is given, what the ranks agree on, else
/// what it assumes.
struct Figures {
  Machine machine;
  bool is_known = true;
};

Figures figures_at_root(Communicator& comm, const CallOptions& options, Device device) {
  if (options.machine) return {*options.machine};
  if (const auto& agreed = comm.figures(figures_of(device))) return {*agreed};
  return {rank_machine(device, comm.reaches(device)), false};
}

/// What the rank that has the inputs makes of them, all of it.
Tensor made_alone(const Operation& operation, const Plan& plan, const std::vector<Tensor>& inputs,
                  CallWatch& watch) {
  const CallWatch::Work time(watch, !inputs[0].device().is_cpu());
  return in_own_memory(operation.alone(plan, inputs), inputs);
}

/// The call of the only rank: nobody to agree with, and no parts.
Tensor run_alone(const CommunicatorPtr& comm, const Operation& operation,
                 const std::vector<Tensor>& inputs, const CallOptions& options) {
  CallWatch watch(*comm, operation.text);
  Tensor result;
  std::shared_ptr<const Planned> made;
  run_together(
      *comm, operation.text, [] {},
      [&] {
        const std::vector<Tensor> given = given_on(0, operation, inputs);
        std::vector<Header> headers;
        for (const Tensor& input : given) headers.push_back(header_of(input));
        const Device device = given[0].device();
        made = planned_at_root(operation, options, headers, 1,
                               figures_at_root(*comm, options, device).machine);
        result = made_alone(operation, made->plan, given, watch);
      });
  watch.file(made);
  return result;
}

}  // namespace

Communicator::Figures figures_of(Device device) {
  return device.is_cpu() ? Communicator::Figures::kHost : Communicator::Figures::kGpu;
}

std::variant<DistTensor, ToMeasure> call_sharded(const Operation& operation,
                                                 const std::vector<DistTensor>& inputs,
                                                 const CallOptions& options) {
  if (inputs.empty() || !inputs[0].is_defined()) {
    throw ExecutionError(
        cat(operation.text, ": a distributed tensor was expected, none was given"));
  }
  Communicator& comm = inputs[0].comm();
  std::string text = full_text(operation, options);
  for (const DistTensor& input : inputs) text += cat("; ", input.to_string());
  if (options.output) text += cat(" -> ", *options.output);
  if (is_strict()) text += ", strict";
  CallWatch watch(comm, operation.text);
  constexpr auto kParts = Communicator::Figures::kParts;
  const std::shared_ptr<const Machine> agreed = comm.figures(kParts);
  // What is assumed is the same everywhere, as a local figure would not be.
  const Machine machine = options.machine ? *options.machine : agreed ? *agreed : Machine{};
  bool is_to_measure = false;
  std::shared_ptr<const Planned> made;
  std::vector<DistTensor> on_one;
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
        on_one = on_one_device(operation, inputs);
        made = planned_openly(operation, options, placements, machine);
        is_to_measure = !options.machine && !agreed && is_worth_measuring(comm, made->plan);
      },
      [&] {
        if (!is_to_measure) result = follow(operation, made->plan, on_one, watch);
      });
  // All ranks have made the same plan, so all of them measure or none.
  if (is_to_measure) return ToMeasure{on_one[0].device(), kParts, machine};
  watch.file(made);
  return result;
}

std::variant<Tensor, ToMeasure> call_rooted(const CommunicatorPtr& comm, const Operation& operation,
                                            const std::vector<Tensor>& inputs,
                                            const CallOptions& options, int root) {
  const bool is_only = comm->size() == 1 && root == 0;
  if (is_only && operation.alone && !operation.is_on_host && options.strategy.empty()) {
    return run_alone(comm, operation, inputs, options);
  }
  const std::string text =
      full_text(operation, options) + ", input on rank " + std::to_string(root);
  const Sharding at_root =
      make_together(*comm, text, [&] { return Sharding::on_rank(Mesh::line(comm->size()), root); });
  const bool is_root = comm->rank() == root;
  CallWatch watch(*comm, operation.text);
  Headers headers;
  RootNote note;
  std::vector<Tensor> on_root;
  std::shared_ptr<const Planned> made;
  const auto plan = [&](const Machine& machine) {
    return planned(operation, options, placements_on(operation.names, headers.tensors, at_root),
                   at_root, machine);
  };
  Tensor result;
  run_together(
      *comm, text,
      [&] {
        if (!is_root) return;
        on_root = given_on(root, operation, inputs);
        for (const Tensor& input : on_root) headers.tensors.push_back(header_of(input));
        const Device device = on_root[0].device();
        const auto [machine, is_known] = figures_at_root(*comm, options, device);
        made = plan(machine);
        note = {machine, made->hash, !device.is_cpu(),
                !is_known && is_worth_measuring(*comm, made->plan)};
      },
      [&] {
        if (comm->size() > 1) {
          if (is_root) headers.note = write_note(note);
          headers = broadcast_headers(*comm, headers, root);
          note = read_note(headers.note);
        }
        if (note.is_to_measure) return;
        const Device device = rank_device(*comm, note.is_on_gpu);
        if (!is_root) {
          made = plan(note.machine);
          if (made->hash != note.hash) {
            throw CommunicationError(
                cat(operation.text, ": rank ", comm->rank(), " planned otherwise than rank ", root,
                    ": ", made->plan.to_string()),
                comm->in_world(comm->rank()));
          }
        }
        if (made->plan.strategy == "root" && operation.alone && !operation.is_on_host) {
          if (is_root) result = made_alone(operation, made->plan, on_root, watch);
          return;
        }
        std::vector<DistTensor> parts;
        for (size_t i = 0; i < headers.tensors.size(); ++i) {
          const Header& header = headers.tensors[i];
          Tensor local = is_root ? on_root[i] : Tensor();
          if (is_root && device.is_cpu()) local = to_device(local, device);
          parts.emplace_back(comm, at_root, header.shape, header.dtype, local, device);
        }
        result = follow(operation, made->plan, parts, watch).local();
        if (is_root) result = in_own_memory(to_device(result, on_root[0].device()), on_root);
      });
  if (note.is_to_measure) {
    const Device device = rank_device(*comm, note.is_on_gpu);
    return ToMeasure{device, figures_of(device), note.machine};
  }
  watch.file(made);
  return is_root ? result : Tensor();
}

}  // namespace cuop::dist
