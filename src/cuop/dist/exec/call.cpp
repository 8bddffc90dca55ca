#include "cuop/dist/exec/call.h"

#include <algorithm>
#include <utility>

#include "cuop/backend/execution.h"
#include "cuop/backend/runtime.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/comm/rank_team.h"
#include "cuop/dist/exec/calibration.h"
#include "cuop/dist/exec/call_frame.h"
#include "cuop/dist/exec/planned.h"
#include "cuop/dist/exec/rank_machine.h"
#include "cuop/dist/exec/report.h"
#include "cuop/dist/header.h"

namespace cuop::dist {
namespace {

/// To begin and end a call on ranks that stay and to agree on it, before anything moves: what 2
/// ranks with a core each take for it in benchmarks/call_frame.cpp ("started" beside "one rank").
double start_seconds(int ranks) { return 1.2e-5 * ranks; }

/// What a call of a plain process plans with for all its GPUs: what they have measured as ranks of
/// this process, else what is assumed of them.
Machine figures_for(Device device, int gpus) {
  if (const auto kept = kept_figures(gpus, device)) return *kept;
  return rank_machine(device, true);
}

/// GPUs for a call of a plain process: more than 1 where the plan for all of them uses them.
int gpus_for(const Operation& operation, const std::vector<Tensor>& inputs,
             const CallOptions& options) {
  const auto is_given = [](const Tensor& x) { return x.is_defined(); };
  const auto given = std::find_if_not(inputs.begin(), inputs.end(), is_given);
  const bool has_gap = std::any_of(given, inputs.end(), is_given);
  if (given == inputs.begin() || has_gap) return 1;  // an error, which is said where all calls go
  const Device device = inputs[0].device();
  const int gpus = device.is_cpu() ? 1 : backend::device_count(device.type);
  if (gpus == 1 || operation.is_on_host) return 1;
  std::vector<Header> headers;
  for (auto input = inputs.begin(); input != given; ++input) headers.push_back(header_of(*input));
  Machine machine = options.machine ? *options.machine : figures_for(device, gpus);
  if (!options.machine) machine.latency += start_seconds(gpus) / 2;  // there and back
  const auto made = planned_at_root(operation, options, headers, gpus, machine);
  return made->plan.strategy == "root" ? 1 : gpus;
}

/// The same call with what its ranks measure, or assume where they cannot.
CallOptions with_figures(const CommunicatorPtr& comm, const ToMeasure& wanted,
                         CallOptions options) {
  run_together(
      *comm, "measure the ranks of a call", [] {},
      [&] { options.machine = calibrate(comm, wanted.device, wanted.of, wanted.assumed); });
  return options;
}

/// The call on ranks that are threads of this process. Rank 0 takes this thread's place: its stream
/// and report; what this thread asks for goes for all.
Tensor run_on_gpus(int gpus, const Operation& operation, const std::vector<Tensor>& inputs,
                   const CallOptions& options) {
  const Stream stream = current_stream(inputs[0].device());
  const backend::ExecutionOptions& execution = backend::execution_options();
  for (const Tensor& input : inputs) {
    if (input.is_defined()) input.data();  // what is recorded runs on this thread
  }
  CallOptions call = options;
  if (!call.machine) call.machine = kept_figures(gpus, inputs[0].device());
  Tensor result;
  FiledReport report;
  run_on_team(gpus, inputs[0].device(), [&](const CommunicatorPtr& comm) {
    const backend::ExecutionScope wanted(execution);
    if (comm->rank() != 0) {
      const bool is_own = operation.for_other_rank != nullptr;
      run_rooted(comm, is_own ? operation.for_other_rank() : operation,
                 std::vector<Tensor>(inputs.size()), call);
      return;
    }
    const StreamScope scope(stream);
    result = run_rooted(comm, operation, inputs, call);
    report = filed_report();
  });
  file_report(std::move(report));
  return result;
}

}  // namespace

DistTensor run_sharded(const Operation& operation, const std::vector<DistTensor>& inputs,
                       const CallOptions& options) {
  auto outcome = call_sharded(operation, inputs, options);
  if (const auto* wanted = std::get_if<ToMeasure>(&outcome)) {
    outcome = call_sharded(operation, inputs, with_figures(inputs[0].comm_ptr(), *wanted, options));
  }
  return std::get<DistTensor>(std::move(outcome));
}

Tensor run_rooted(const CommunicatorPtr& comm, const Operation& operation,
                  const std::vector<Tensor>& inputs, const CallOptions& options, int root) {
  if (comm->size() == 1 && root == 0) {
    const int gpus = gpus_for(operation, inputs, options);
    if (gpus > 1) return run_on_gpus(gpus, operation, inputs, options);
  }
  auto outcome = call_rooted(comm, operation, inputs, options, root);
  if (const auto* wanted = std::get_if<ToMeasure>(&outcome)) {
    outcome = call_rooted(comm, operation, inputs, with_figures(comm, *wanted, options), root);
  }
  return std::get<Tensor>(std::move(outcome));
}

}  // namespace cuop::dist
