#include <algorithm>

#include "cuop/ops/copy/copy.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/blas_reading_internal.h"

namespace cuop::kernels {

std::optional<Reading> reading(const Tensor& t, bool prefer_transposed) {
  const int r = t.ndim() - 2;
  const int64_t rows = t.shape(r), columns = t.shape(r + 1);
  const int64_t row_step = t.strides()[r], column_step = t.strides()[r + 1];
  std::optional<Reading> plain, transposed;
  if ((column_step == 1 || columns == 1) && (row_step >= columns || rows == 1) &&
      (row_step > 0 || rows == 1)) {
    plain = Reading{Trans::kNone, rows == 1 ? std::max<int64_t>(1, columns) : row_step};
  }
  if ((row_step == 1 || rows == 1) && (column_step >= rows || columns == 1) &&
      (column_step > 0 || columns == 1)) {
    transposed = Reading{Trans::kTrans, columns == 1 ? std::max<int64_t>(1, rows) : column_step};
  }
  if (prefer_transposed) return transposed ? transposed : plain;
  return plain ? plain : transposed;
}

Tensor compact(const Tensor& t) {
  Tensor distinct = t;
  for (int i = 0; i < t.ndim(); ++i) {
    if (t.strides()[i] == 0 && t.shape(i) > 1) distinct = slice(distinct, i, 0, 1);
  }
  return broadcast_to(clone(distinct), t.shape());
}

}  // namespace cuop::kernels
