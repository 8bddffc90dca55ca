#include "tests/simulator/transfer.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/simulator/capture.h"
#include "tests/simulator/device.h"
#include "tests/simulator/faults.h"

namespace cuop::simulator {

namespace {

/// One end of a copy.
struct Side {
  DevicePointer address;
  size_t bytes;
  bool is_simulated;  ///< a device's memory or page-locked by the driver
  bool is_pageable;
};

Side side_of(DevicePointer address, size_t bytes) {
  const AddressSpace& space = AddressSpace::instance();
  const bool is_simulated = space.is_within(address);
  const bool is_locked =
      is_simulated || space.is_registered(reinterpret_cast<const void*>(address), bytes);
  return {address, bytes, is_simulated, !is_locked};
}

/// Whether the bytes are all there and a copy started for the device may touch them.
bool is_usable(const Side& side, int device, Naming naming) {
  if (!side.is_simulated) return true;
  const AddressSpace& space = AddressSpace::instance();
  const auto block = space.find(side.address);
  if (!block) return false;
  // The driver finds a way to another device's memory, but not to what is mapped for that one only.
  const bool is_found = naming == Naming::kBothContexts || !block->is_mapped;
  return space.is_reached(side.address, side.bytes, is_found ? block->device : device);
}

/// What touches memory that is gone by then, or was never there for the device, ends its use.
Result refuse(const char* what, const Side& side) {
  std::fprintf(stderr, "simulated GPU: a %s of %zu bytes at %p, which are not there\n", what,
               side.bytes, reinterpret_cast<void*>(side.address));
  return Result::kIllegalAddress;
}

template <class T>
void fill_row(DevicePointer to, size_t count, unsigned value) {
  auto* first = reinterpret_cast<T*>(to);
  std::fill(first, first + count, static_cast<T>(value));
}

bool is_capturing(const Stream& stream) {
  const std::lock_guard lock(capture_mutex());
  return stream.capture != nullptr;
}

}  // namespace

Result copy(Stream& stream, DevicePointer to, DevicePointer from, size_t bytes, Naming naming) {
  if (bytes == 0) return Result::kSuccess;
  const int device = stream.device();
  const Side target = side_of(to, bytes), source = side_of(from, bytes);
  if (!is_usable(target, device, naming) || !is_usable(source, device, naming)) {
    return Result::kInvalidValue;
  }
  const bool is_recorded = is_capturing(stream);
  // Ordinary host memory is read before the call returns.
  std::shared_ptr<std::vector<char>> staged;
  if (source.is_pageable && !is_recorded) {
    const auto* first = reinterpret_cast<const char*>(from);
    staged = std::make_shared<std::vector<char>>(first, first + bytes);
  }
  const Result result = start(Asked::kCopy, stream, reinterpret_cast<const void*>(&copy), [=] {
    if (!is_usable(target, device, naming)) return refuse("copy to", target);
    if (!is_usable(source, device, naming)) return refuse("copy from", source);
    const auto* first = staged ? staged->data() : reinterpret_cast<const char*>(from);
    std::memmove(reinterpret_cast<void*>(to), first, bytes);
    return Result::kSuccess;
  });
  if (result != Result::kSuccess || !target.is_pageable || is_recorded) return result;
  wait_for(stream.last());
  return error_of(device);
}

Result copy_rows(Stream& stream, const RowCopy& copy) {
  if (copy.row_bytes == 0 || copy.rows == 0) return Result::kSuccess;
  if (copy.to_pitch < copy.row_bytes || copy.from_pitch < copy.row_bytes) {
    return Result::kInvalidValue;
  }
  const auto side = [&](DevicePointer first, size_t pitch) {
    return side_of(first, (copy.rows - 1) * pitch + copy.row_bytes);
  };
  const Side target = side(copy.to, copy.to_pitch), source = side(copy.from, copy.from_pitch);
  const int device = stream.device();
  const auto is_fine = [device](const Side& which) {
    return !which.is_pageable && is_usable(which, device, Naming::kByAddress);
  };
  if (!is_fine(target) || !is_fine(source)) return Result::kInvalidValue;
  return start(Asked::kCopy, stream, reinterpret_cast<const void*>(&simulator::copy_rows), [=] {
    if (!is_fine(target)) return refuse("copy to", target);
    if (!is_fine(source)) return refuse("copy from", source);
    for (size_t row = 0; row < copy.rows; ++row) {
      std::memmove(reinterpret_cast<void*>(copy.to + row * copy.to_pitch),
                   reinterpret_cast<const void*>(copy.from + row * copy.from_pitch),
                   copy.row_bytes);
    }
    return Result::kSuccess;
  });
}

Result fill(Stream& stream, const Fill& fill) {
  if (fill.columns == 0 || fill.rows == 0) return Result::kSuccess;
  const size_t row_bytes = fill.columns * fill.element_bytes;
  const bool is_one = fill.rows == 1;
  if (fill.to % fill.element_bytes != 0) return Result::kInvalidValue;
  if (!is_one && (fill.pitch < row_bytes || fill.pitch % fill.element_bytes != 0)) {
    return Result::kInvalidValue;
  }
  const Side target =
      side_of(fill.to, is_one ? row_bytes : (fill.rows - 1) * fill.pitch + row_bytes);
  const int device = stream.device();
  if (!target.is_simulated || !is_usable(target, device, Naming::kByAddress)) {
    return Result::kInvalidValue;
  }
  return start(Asked::kFill, stream, reinterpret_cast<const void*>(&simulator::fill), [=] {
    if (!is_usable(target, device, Naming::kByAddress)) return refuse("fill", target);
    for (size_t row = 0; row < fill.rows; ++row) {
      const DevicePointer at = fill.to + row * fill.pitch;
      if (fill.element_bytes == 1) fill_row<uint8_t>(at, fill.columns, fill.value);
      if (fill.element_bytes == 2) fill_row<uint16_t>(at, fill.columns, fill.value);
      if (fill.element_bytes == 4) fill_row<uint32_t>(at, fill.columns, fill.value);
    }
    return Result::kSuccess;
  });
}

}  // namespace cuop::simulator
