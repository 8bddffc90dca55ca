#include "cuop/operators/tuned/measure.h"

#include <algorithm>

#include "cuop/backend/execution.h"
#include "cuop/jit/launch.h"
#include "cuop/ops/agreement.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/tune/clock.h"
#include "cuop/tune/library_tuning.h"

namespace cuop {

namespace {

/// Beyond this the plain loops of one thread, or one element a thread on a GPU, lose to anything;
/// running them would only cost time.
constexpr double kMostFlopsOfSimple = 2e7, kMostFlopsOfSimpleOnGpu = 2e9;
/// On the CPU; a GPU's tiles are its fastest kernels.
constexpr double kMostFlopsOfTile = 1e9;

bool is_too_slow_to_try(const Task& task, const Kernel& kernel) {
  if (!task.out.device().is_cpu()) {  // of most kernels one run tells; the plain product's is long
    return kernel.type == KernelType::kSimple && kernel.tile != 0 &&
           task.cost.flops > kMostFlopsOfSimpleOnGpu;
  }
  if (kernel.type == KernelType::kSimple) return task.cost.flops > kMostFlopsOfSimple;
  return kernel.tile != 0 && task.cost.flops > kMostFlopsOfTile;
}

}  // namespace

void run_kernel(const Task& task, const Kernel& kernel, const Tensor& out) {
  const backend::ExecutionScope scope(backend::with_kernel(kernel));
  task.run(out);
}

void try_kernel(const Task& task, const Kernel& kernel, const Tensor& out) {
  const backend::ExecutionScope scope(backend::with_kernel(kernel));
  (task.trial ? task.trial : task.run)(out);
}

Tensor trial_output(const Task& task) {
  return task.reads_out ? clone(task.out)
                        : empty(task.out.shape(), task.out.dtype(), task.out.device());
}

tune::Finding fastest_algorithms(const Task& task, const Kernel& kernel,
                                 const tune::SearchLimits& limits) {
  tune::LibraryTuning tuning(limits.rounds, limits.seconds);
  try_kernel(task, kernel, trial_output(task));
  tune::Finding finding;
  finding.text = tuning.text().empty() ? "no library has a choice\n" : tuning.text();
  finding.is_complete = tuning.is_complete();
  finding.gain = tuning.gain();
  finding.measurements = tuning.measurements();
  return finding;
}

tune::SearchResult fastest_kernel(const Task& task, const std::vector<Kernel>& kernels,
                                  const tune::SearchLimits& limits, const char* first_name) {
  std::vector<Tensor> outs(kernels.size());
  std::vector<std::vector<jit::LaunchWatch::Launch>> launches(kernels.size());
  std::vector<tune::Candidate> candidates;
  for (size_t i = 0; i < kernels.size(); ++i) {
    tune::Candidate candidate;
    candidate.name = i == 0 && *first_name != '\0' ? first_name : name(kernels[i]);
    candidate.run = [&task, &kernels, &outs, &launches, i](int64_t turn) {
      if (turn != 0) return try_kernel(task, kernels[i], outs[i]);
      outs[i] = trial_output(task);
      const jit::LaunchWatch watch;
      try_kernel(task, kernels[i], outs[i]);
      launches[i] = watch.launches();
    };
    if (i > 0) {
      candidate.twin = [&kernels, &launches, i] {
        const auto same =
            std::find(launches.begin(), launches.end(), launches[i]) - launches.begin();
        const auto first = static_cast<size_t>(same);
        return first == i || launches[i].empty() ? "" : name(kernels[first]);
      };
      candidate.disagreement = [&outs, i] { return disagreement(outs[0], outs[i]); };
      if (is_too_slow_to_try(task, kernels[i])) candidate.why_not = "not run: too many operations";
    }
    candidates.push_back(std::move(candidate));
  }
  return tune::search(candidates, *tune::clock_for(task.out.device()), {limits});
}

}  // namespace cuop
