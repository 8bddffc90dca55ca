// Rows of bytes that lie apart, copied by a GPU's copy engine.
#pragma once

#include <cstdint>

#include "cuop/core/stream.h"

namespace cuop::backend::cuda {

struct RowCopy {
  void* to = nullptr;
  const void* from = nullptr;
  int64_t row_bytes = 0;
  int64_t rows = 0;
  int64_t to_pitch = 0;  ///< bytes from one row to the next, at least those of a row
  int64_t from_pitch = 0;
};

/// The largest pitch that every device takes.
constexpr int64_t kMaxPitch = INT32_MAX;

/// Copies between memory of the stream's device and memory that it reads, as work of the stream.
void copy_rows(const RowCopy& copy, Stream stream);
/// The same between memory of the device and page-locked memory of the host; done when it returns.
/// An interrupt is heard between pieces, of which none is under way any more when it is raised.
void copy_locked_rows(const RowCopy& copy, Stream stream);

}  // namespace cuop::backend::cuda
