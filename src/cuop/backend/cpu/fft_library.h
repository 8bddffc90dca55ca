// The seam to an FFT library on the CPU: plans of 1-D transforms. FFTW stands behind it; another
// library fits there as well.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cuop/backend/fft_spec.h"

namespace cuop::backend {

/// Both addresses given to a plan must be multiples of this.
inline constexpr int64_t kFftAlignment = 16;

class FftPlan {
 public:
  virtual ~FftPlan() = default;
  /// `in` and `out` must not overlap. kRealBackward overwrites its input, the others do not. May be
  /// called by several threads at once.
  virtual void execute(void* in, void* out) const = 0;
};

class FftLibrary {
 public:
  virtual ~FftLibrary() = default;
  virtual bool is_available() const = 0;
  /// Name, version and file, or why it was not found.
  virtual std::string description() const = 0;
  /// DeviceError when the library is absent.
  virtual std::unique_ptr<FftPlan> make_plan(const FftPlanSpec& spec) = 0;
};

FftLibrary& fftw_library();

}  // namespace cuop::backend
