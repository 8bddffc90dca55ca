// Products of dense matrices, some of whose elements are zero, by whichever way is faster.
#pragma once

#include <optional>
#include <string_view>

#include "cuop/core/tensor.h"
#include "cuop/ops/sparse/sparse_matrix.h"

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

/// `a` [m, k] taken apart, where kAuto predicts that this is faster for products with dense
/// matrices of `n` columns in all, or where the path is kSparse; none where results of `dtype` are
/// dense.
std::optional<SparseMatrix> taken_apart(const Tensor& a, int64_t n, ProductPath path, DType dtype);
/// c = a b of such an `a`: by its zeros where b is finite or the path is kSparse.
void multiply_apart(const SparseMatrix& apart, const Tensor& a, const Tensor& b, ProductPath path,
                    const Tensor& c);

/// c = a b, or c += a b; three matrices of one dtype, or 16-bit floats and c in float32 (see
/// matmul's `dtype`), `c` without overlap. kAuto counts zeros, and
/// takes the sparse way where the other operand is finite, so that no NaN that a zero makes of an
/// infinity gets lost; kSparse takes `a` apart and lets go of those. Where c is not float32 or
/// float64 the product is dense. Returns what was taken apart.
SparseOperand multiply_by_path(const Tensor& a, const Tensor& b, bool adds, ProductPath path,
                               const Tensor& c);

}  // namespace cuop
