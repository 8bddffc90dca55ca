// What a JIT wrapper's last call took. On a GPU the kernel's time is read from marks in the stream
// when somebody asks, so the call itself waits for nothing.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "cuop/operators/task.h"

namespace cuop {

/// Of the last call. Times in ms.
struct PerformanceProfile {
  double execution_time = 0.0;       ///< the whole call without choosing or compiling the kernel
  double kernel_time_ms = 0.0;       ///< the kernel alone, on a GPU by the stream's own time
  double launch_overhead_ms = 0.0;   ///< checks, look-ups and, on a GPU, starting the kernel
  double compilation_time_ms = 0.0;  ///< what choosing the kernel cost when it was chosen, and what
                                     ///< compiling cost in this call
  double gflops = 0.0;               ///< 1e9 operations a second of the kernel
  double bandwidth_gb_s = 0.0;       ///< 1e9 bytes a second that the kernel must move at least
  /// See percent_of_roof in roof.h; NaN until somebody has measured the roof (measured_roof).
  double percent_of_roof = std::numeric_limits<double>::quiet_NaN();
  bool used_tensor_core = false;  ///< by the account of the library or the kernel that ran
  /// "simple", "tiled", "tiled/32", "library" for one on a GPU; of a GPU's own products also
  /// threads and stages, "tiled/64/256/3" (backend::name). "" before the first call.
  std::string kernel_type;
  /// Of the numbers that were computed with: the dtype's name, or "tf32x3" for products of float32
  /// on matrix units: each factor as the sum of two tf32 numbers. "" before the first call.
  std::string precision;
  /// What of the configuration means nothing to the device that ran: "block_size=256: no effect on
  /// cpu (it counts the threads of a GPU's block)".
  std::vector<std::string> no_effect;
};

/// What was noted during a call.
struct CallRecord {
  Device device;
  Cost cost;
  double before_ms = 0.0;     ///< host time until the kernel was started, without choosing it
  double running_ms = 0.0;    ///< host time of running (CPU) or starting (GPU) it
  double compiling_ms = 0.0;  ///< part of running_ms that went into compiling
  double choosing_ms = 0.0;   ///< when it was chosen, whenever that was
  std::string kernel_type;
  std::string precision;
  bool used_tensor_core = false;
  std::vector<std::string> no_effect;
  /// Of the kernel on a GPU; none on the CPU, and where a graph recorded it.
  std::vector<trace::StreamWork> work;
};

/// The figures of a call, without percent_of_roof. Waits for the kernel on a GPU. Where the
/// kernel's time is unknown it and the rates are 0.
PerformanceProfile profile_of(const CallRecord& call);

}  // namespace cuop
