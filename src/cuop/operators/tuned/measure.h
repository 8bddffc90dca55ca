// Finding the fastest of a task's kernels by running them.
#pragma once

#include <string>
#include <vector>

#include "cuop/operators/task.h"
#include "cuop/tune/tuner.h"

namespace cuop {

/// The first candidate unless another gives the same result and is faster beyond doubt
/// (tune/search.h). Runs on outputs of its own; `task.out` is not written. Candidates that are
/// hopeless by their operation count are not run. Errors of the first candidate leave; other
/// candidates that fail are out. `first_name`: what the first candidate is called, if not by its
/// name.
tune::SearchResult fastest_kernel(const Task& task, const std::vector<Kernel>& candidates,
                                  const tune::SearchLimits& limits, const char* first_name = "");

/// Runs the kernel once on an output of its own, and lets the libraries that it calls search for
/// the fastest of their algorithms (tune/library_tuning.h).
tune::Finding fastest_algorithms(const Task& task, const Kernel& kernel,
                                 const tune::SearchLimits& limits);

/// Runs the task by one kernel into `out`.
void run_kernel(const Task& task, const Kernel& kernel, const Tensor& out);
/// The same without any effect but on `out`.
void try_kernel(const Task& task, const Kernel& kernel, const Tensor& out);
/// An output to try a task on: the values of `task.out` when they are an input.
Tensor trial_output(const Task& task);

}  // namespace cuop
