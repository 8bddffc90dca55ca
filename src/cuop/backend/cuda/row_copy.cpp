#include "cuop/backend/cuda/row_copy.h"

#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/driver.h"
#include "cuop/backend/cuda/operation.h"

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

}  // namespace cuop::backend::cuda
