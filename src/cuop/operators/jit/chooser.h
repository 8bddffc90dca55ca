// Which kernel a wrapper runs for a call: remembered by the process, kept on disk, or found out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cuop/operators/jit/measure.h"
#include "cuop/tune/choice_store.h"

namespace cuop {

struct ChoiceRequest {
  const Task* task = nullptr;
  std::string who;                 ///< the operator's name
  std::vector<Kernel> candidates;  ///< the default first
  std::string demands = {};        ///< KernelDemands::text of this thread's demands
  bool is_measured = false;        ///< false: the first candidate, without running any
  bool is_asked = false;           ///< measure on a busy device too
  bool is_for_library = false;  ///< what the first candidate leaves to a library is measured first
  MeasureOptions measuring{};
  bool is_cached = true;                   ///< remember and look up
  tune::ChoiceStore* store = nullptr;      ///< and on disk, when there is one
  int most_makers = 4;                     ///< threads of the process that may measure at a time
  tune::ChoiceStore* log_store = nullptr;  ///< where what was measured is written, if anywhere
};

struct ChosenKernel {
  /// kPutOff: the default, because nothing may be measured now.
  enum class Source { kMade, kMemory, kDisk, kPutOff };
  Kernel kernel;
  Source source = Source::kMade;
  double made_in_ms = 0.0;  ///< what finding it cost when it was found
  double took_ms = 0.0;     ///< what this call cost
  double gain = 0.0;        ///< part of the default kernel's time that this one saved
  std::string text = {};    ///< what was measured when it was found, one line a candidate
  std::vector<tune::Measurement> measurements = {};  ///< the same as numbers
};

/// Waiting for a turn to measure and measuring together take no longer than `measuring.seconds`
/// beyond the run that is going on then. What was chosen for want of time is remembered, but not
/// kept on disk; what was chosen because nothing may be measured now (tune/permission.h) is
/// neither.
ChosenKernel choose_kernel(const ChoiceRequest& request);

/// Forgets what the process remembers; answers how many choices that were.
int64_t forget_choices();

}  // namespace cuop
