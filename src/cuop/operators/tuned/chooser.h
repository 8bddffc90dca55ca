// Which kernel a wrapper runs for a call: remembered by the process, kept on disk, or found out.
#pragma once

#include <string>
#include <vector>

#include "cuop/operators/task.h"
#include "cuop/tune/tuner.h"

namespace cuop {

struct ChoiceRequest {
  const Task* task = nullptr;
  std::string who;                 ///< the operator's name
  std::vector<Kernel> candidates;  ///< the default first
  bool is_measured = false;        ///< false: the first candidate, without running any
  bool is_for_library = false;  ///< what the first candidate leaves to a library is measured first
  bool is_cached = true;        ///< remember and look up
  tune::ChoiceOptions options = {.most_measuring = 4};
};

struct ChosenKernel {
  using Source = tune::Choosing::Source;
  Kernel kernel;
  Source source = Source::kMade;
  double took_ms = 0.0;  ///< what this call cost
  std::shared_ptr<const tune::Finding> found = {};
};

/// By tune::choose under this thread's options (backend/execution.h), on outputs of its own: the
/// task's is not written. What the library's algorithms and then the kernels are measured for is a
/// fraction of the default's time.
ChosenKernel choose_kernel(const ChoiceRequest& request);

/// Forgets what the process remembers; returns how many choices that were.
int64_t forget_choices();

}  // namespace cuop
