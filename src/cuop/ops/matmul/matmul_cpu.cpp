#include "cuop/core/dtype.h"
#include "cuop/ops/matmul/matmul_kernels.h"

namespace cuop::kernels {

namespace {

Dims without_matrix(const Dims& dims) {
  return Dims(std::span<const int64_t>(dims.begin(), static_cast<size_t>(dims.ndim() - 2)));
}

}  // namespace

BatchOffsets::BatchOffsets(const Product& product)
    : shape_(without_matrix(product.c.shape())),
      a_(without_matrix(product.a.strides())),
      b_(without_matrix(product.b.strides())),
      c_(without_matrix(product.c.strides())),
      count_(element_count(shape_)) {}

BatchOffsets::Offsets BatchOffsets::operator()(int64_t index) const {
  Offsets offsets;
  for (int i = shape_.ndim() - 1; i >= 0; --i) {
    // The first axis takes what is left: most batches have one axis, and divisions are slow.
    const int64_t position = i == 0 ? index : index % shape_[i];
    if (i > 0) index /= shape_[i];
    offsets.a += position * a_[i];
    offsets.b += position * b_[i];
    offsets.c += position * c_[i];
  }
  return offsets;
}

void matmul_cpu(Product& product) {
  const DType dtype = product.c.dtype();
  if (is_integer(dtype) || is_bool(dtype)) {
    matmul_integer_cpu(product);
  } else if (compute_dtype(dtype) != dtype) {
    matmul_half_cpu(product);
  } else {
    matmul_blas_cpu(product);
  }
}

}  // namespace cuop::kernels
