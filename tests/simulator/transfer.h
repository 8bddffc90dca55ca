// Copies and fills as work of streams.
#pragma once

#include <cstddef>

#include "tests/simulator/address_space.h"
#include "tests/simulator/stream.h"

namespace cuop::simulator {

/// Whether the memory of two devices is copied with both named: then no access of one to the other
/// is needed.
enum class Naming : int { kByAddress, kBothContexts };

Result copy(Stream& stream, DevicePointer to, DevicePointer from, size_t bytes, Naming naming);

/// Between memory of devices, rows beginning a pitch apart on both sides.
struct RowCopy {
  DevicePointer to = 0, from = 0;
  size_t to_pitch = 0, from_pitch = 0, row_bytes = 0, rows = 0;
};
Result copy_rows(Stream& stream, const RowCopy& copy);

/// `rows` times `columns` elements of `element_bytes`, rows beginning `pitch` bytes apart.
struct Fill {
  DevicePointer to = 0;
  size_t pitch = 0, columns = 0, rows = 1;
  unsigned value = 0;
  size_t element_bytes = 1;
};
Result fill(Stream& stream, const Fill& fill);

}  // namespace cuop::simulator
