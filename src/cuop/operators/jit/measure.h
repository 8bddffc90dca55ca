// Finding the fastest of a task's kernels by running them.
#pragma once

#include <string>
#include <vector>

#include "cuop/operators/task.h"
#include "cuop/tune/search.h"

namespace cuop {

struct MeasureOptions {
  int rounds = 9;                 ///< samples of each candidate, interleaved
  double seconds = 30.0;          ///< candidates not reached in this time do not win
  bool is_first_library = false;  ///< the first candidate is a library's, and is called so
};

struct Measured {
  Kernel kernel;            ///< the winner
  std::string text;         ///< one line a candidate: its time, or why it is out
  bool is_complete = true;  ///< false: time ran out before every candidate had its turn
  double gain = 0.0;        ///< part of the default's time that the winner saves
  bool is_put_off = false;  ///< true: nothing may be measured now, so the next call asks again
  /// Of every candidate, and of every algorithm of a library that was searched for.
  std::vector<tune::Measurement> measurements = {};
};

/// The first candidate unless another gives the same result and is faster beyond doubt
/// (tune/search.h). Runs on outputs of its own; `task.out` is not written. Candidates that are
/// hopeless by their operation count are not run. Errors of the first candidate leave; other
/// candidates that fail are out.
Measured fastest_kernel(const Task& task, const std::vector<Kernel>& candidates,
                        const MeasureOptions& options);

/// Runs the kernel once on an output of its own, and lets the libraries that it calls search for
/// the fastest of their algorithms (tune/library_tuning.h). Answers the kernel.
Measured fastest_algorithms(const Task& task, const Kernel& kernel, const MeasureOptions& options);

/// Runs the task by one kernel into `out`.
void run_kernel(const Task& task, const Kernel& kernel, const Tensor& out);
/// The same without any effect but on `out`.
void try_kernel(const Task& task, const Kernel& kernel, const Tensor& out);
/// An output to try a task on: the values of `task.out` when they are an input.
Tensor trial_output(const Task& task);

}  // namespace cuop
