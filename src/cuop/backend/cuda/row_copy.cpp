#include "cuop/backend/cuda/row_copy.h"

#include <algorithm>

#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/driver.h"
#include "cuop/backend/cuda/operation.h"
#include "cuop/core/interrupt.h"

namespace cuop::backend::cuda {

void copy_rows(const RowCopy& copy, Stream stream) {
  if (copy.rows <= 0 || copy.row_bytes <= 0) return;
  const ContextScope scope(stream.device);
  Copy2d request;
  request.from.address = device_pointer(copy.from);
  request.from.pitch = static_cast<size_t>(copy.from_pitch);
  request.to.address = device_pointer(copy.to);
  request.to.pitch = static_cast<size_t>(copy.to_pitch);
  request.row_bytes = static_cast<size_t>(copy.row_bytes);
  request.rows = static_cast<size_t>(copy.rows);
  Operation operation("copy", stream);
  check(driver().memcpy_2d_async(&request, handle_of(stream)), "copy: ", copy.rows, " rows of ",
        copy.row_bytes, " bytes on ", stream.device);
  operation.started();
}

void copy_locked_rows(const RowCopy& copy, Stream stream) {
  constexpr int64_t kPieceBytes = 256 << 20;  // some 0.01 s
  const int64_t most = std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(1, copy.row_bytes));
  const ContextScope scope(stream.device);
  RowCopy piece = copy;
  for (int64_t first = 0; first < copy.rows; first += most) {
    check_interrupt();
    piece.rows = std::min(most, copy.rows - first);
    piece.to = static_cast<char*>(copy.to) + first * copy.to_pitch;
    piece.from = static_cast<const char*>(copy.from) + first * copy.from_pitch;
    copy_rows(piece, stream);
    check(driver().stream_synchronize(handle_of(stream)), "copy: waiting for ", piece.rows,
          " rows on ", stream.device);
  }
}

}  // namespace cuop::backend::cuda
