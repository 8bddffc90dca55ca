// 1-D transforms of the FFT library on the CPU, which is found at run time.
#pragma once

#include <memory>
#include <string>

#include "cuop/backend/cpu/fft_library.h"

namespace cuop::backend {

/// The library in use.
FftLibrary& fft_library();
/// The plan for `spec`, made on first use and kept. Thread-safe.
std::shared_ptr<const FftPlan> fft_plan(const FftPlanSpec& spec);

struct FftInfo {
  bool is_available = false;
  std::string description;
};
/// For `cuop info`.
FftInfo fft_info();

}  // namespace cuop::backend
