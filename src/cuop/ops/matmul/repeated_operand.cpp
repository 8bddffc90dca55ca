#include "cuop/ops/matmul/repeated_operand.h"

#include "cuop/core/error.h"
#include "cuop/core/log.h"
#include "cuop/ops/matmul/matmul.h"

namespace cuop {

namespace {

bool is_single_precision(const Tensor& t) { return t.dtype() == DType::kFloat32; }

/// Rows of a, or columns of b.
kernels::MatrixStack lines_of(const Tensor& t, int side) {
  const auto stack = kernels::MatrixStack::of(t, 0, 1, 0);
  return side == 0 ? stack : stack.turned();
}

}  // namespace

RepeatedOperand::RepeatedOperand(const Tensor& matrix, int side, int64_t m, int64_t n)
    : matrix_(matrix), side_(side) {
  const int64_t k = matrix.shape(1 - side);
  if (!is_single_precision(matrix) || m == 0 || n == 0 || k == 0) return;
  columns_ = kernels::split_columns_on(matrix.device(), m, n, k);
  if (columns_ == 0) return;
  try {
    split_ = kernels::room_for_parts(lines_of(matrix, side));
    kernels::split_stack(split_);
  } catch (const MemoryError& error) {
    log(LogLevel::kInfo, "matmul: no room for parts, cuBLASLt multiplies: ", error.what());
    columns_ = 0;
  }
}

void RepeatedOperand::multiply(const Tensor& other, const Tensor& out) const {
  const auto whole = [&] {
    side_ == 0 ? matmul(matrix_, other, {}, &out) : matmul(other, matrix_, {}, &out);
  };
  if (columns_ == 0 || !is_single_precision(other) || !is_single_precision(out)) return whole();
  kernels::SplitStack split;
  try {
    split = kernels::room_for_parts(lines_of(other, 1 - side_));
  } catch (const MemoryError&) {
    return whole();  // which says so
  }
  kernels::split_stack(split);
  const auto c = kernels::MatrixStack::of(out, 0, 1, 0);
  kernels::multiply_parts(side_ == 0 ? split_ : split, side_ == 0 ? split : split_, c, 1, 0,
                          columns_);
}

}  // namespace cuop
