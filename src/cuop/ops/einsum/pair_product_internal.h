// Internal: steps of a contraction, computed.
#pragma once

#include <optional>

#include "cuop/core/tensor.h"
#include "cuop/ops/einsum/pair_layout_internal.h"
#include "cuop/ops/matmul/product_bytes.h"

namespace cuop::pairwise {

/// A tensor whose dimensions are called so.
struct NamedTensor {
  Tensor tensor;
  Indices indices;

  Named named() const { return {tensor.layout(), indices}; }
};

/// out (of result's dimensions, of any strides) <- the product of both, summed over the indices
/// that `result` lacks. All have one dtype, or out is float32 and the others are 16-bit floats:
/// then nothing is rounded. out overlaps neither.
void multiply_pair(const NamedTensor& left, const NamedTensor& right, const Indices& result,
                   const Tensor& out);

/// The sum of x over the indices that `result` lacks, in the dtype of x and with its dimensions in
/// that order; a view where nothing is summed.
Tensor sum_to(const NamedTensor& x, const Indices& result);

/// What a pair has for itself at most, beside what it is given: elements of the product's dtype,
/// and the product that is made of matrices; none where nothing is summed.
struct PairWork {
  double elements = 0;
  std::optional<ProductExtents> product = {};
};
PairWork pair_work(const Named& left, const Named& right, const Indices& result, const Layout& out,
                   DType dtype, Device device);
/// Bytes that a sum has for itself at most.
double sum_scratch(const Named& x, const Indices& result, DType dtype);

/// How `sum_to` makes its result.
Layout sum_layout(const Named& x, const Indices& result);

/// The view whose dimensions are called `wanted` of a tensor whose dimensions are called `given`:
/// the diagonal where one is repeated. Dimensions that are not wanted have size 1.
Tensor diagonal_view(const Tensor& x, const Indices& given, const Indices& wanted);

}  // namespace cuop::pairwise
