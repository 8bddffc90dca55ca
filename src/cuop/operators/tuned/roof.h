// What a device can do at best: the yardstick of profiles. Measured when somebody asks for it, once
// for each device and driver, and kept in the cache directory.
#pragma once

#include <optional>
#include <string>

#include "cuop/operators/task.h"
#include "cuop/tune/clock.h"

namespace cuop {

struct Roof {
  double flops_per_second = 0.0;  ///< of a large matrix product; 0 where there is none (no BLAS)
  double bytes_per_second = 0.0;  ///< read and written, of a large copy in memory
};

/// For float32 or float64: from the cache on disk, else measured, which takes some tens of
/// milliseconds. What was measured while others kept the device busy serves this process alone.
/// Zeros while this thread captures a graph, when nothing can be measured.
Roof measured_roof(DType dtype, Device device = kCpu);
/// The same where it has been measured, by this process or by one whose cache this is; measures
/// nothing.
std::optional<Roof> known_roof(DType dtype, Device device = kCpu);

/// The measurement itself: copies and products of growing size, until one takes long enough for the
/// clock, then the shortest of some.
Roof measure_roof(DType dtype, Device device, tune::Clock& clock);
/// As it is kept on disk, and back; false for a text that is none.
std::string to_text(const Roof& roof);
bool parse_roof(const std::string& text, Roof& roof);

/// The time that the roof allows at best, over the time that was needed, times 100. Work within the
/// caches can exceed 100, because the roof is that of memory. 0 when either is unknown.
double percent_of_roof(const Cost& cost, double milliseconds, const Roof& roof);

}  // namespace cuop
