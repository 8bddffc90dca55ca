// Products of dense matrices, some of whose elements are zero, by whichever way is faster.
#pragma once

#include <string_view>

#include "cuop/core/tensor.h"

namespace cuop {

enum class ProductPath : uint8_t { kDense, kSparse, kAuto };
const char* name(ProductPath path);
/// "dense", "sparse" or "auto"; ExecutionError "who: ..." for any other.
ProductPath parse_product_path(std::string_view text, const char* who);

/// Which operand is taken apart.
enum class SparseOperand : uint8_t { kNone, kA, kB };

/// A product [m, k] x [k, n] and how many elements of its operands are not zero.
struct CountedProduct {
  int64_t m = 0, n = 0, k = 0;
  int64_t a_nonzeros = 0, b_nonzeros = 0;
};
/// The operand by whose zeros the product is predicted to take at most nine tenths of the dense
/// product's time; kNone where there is none.
SparseOperand cheaper_operand(const CountedProduct& product, Device device);

/// c = a b, or c += a b; three matrices of one dtype, or 16-bit floats and c in float32 (see
/// matmul's `dtype`), `c` without overlap. kAuto counts zeros, and
/// takes the sparse way where the other operand is finite, so that no NaN that a zero makes of an
/// infinity gets lost; kSparse takes `a` apart and lets go of those. Where c is not float32 or
/// float64 the product is dense. Returns what was taken apart.
SparseOperand multiply_by_path(const Tensor& a, const Tensor& b, bool adds, ProductPath path,
                               const Tensor& c);

}  // namespace cuop
