// Tensors without their zeros for a journey, bit by bit but for -0, which becomes 0.
#pragma once

#include <cstdint>

#include "cuop/core/tensor.h"

namespace cuop::dist {

/// How a tensor of n elements, `nonzeros` of which are not zero, is written.
struct SparseForm {
  enum class Kind : int64_t {
    kDense,        ///< as it is
    kCoordinates,  ///< of each nonzero its place, 4 bytes, and its value
    kBitmap,       ///< a bit for each element, and the values of the nonzeros
  };
  Kind kind = Kind::kDense;
  int64_t nonzeros = 0;

  /// The shortest for elements of `item` bytes, kDense where less than `threshold` of them are
  /// zero.
  static SparseForm shortest(int64_t n, int64_t nonzeros, int64_t item, double threshold);
  /// Bytes of places or bits.
  int64_t index_bytes(int64_t n) const;
  /// Whether numbers that came from elsewhere describe a tensor of n elements.
  bool is_sound(int64_t n) const;
};

struct Sparse {
  SparseForm form;
  Tensor index;   ///< uint8: the places or bits; none of kDense
  Tensor values;  ///< of the nonzeros in row-major order; of kDense the tensor
};

/// From this part of zeros on. `is_sampled`: they are not counted where a sample has clearly fewer.
Sparse without_zeros(const Tensor& x, double threshold, bool is_sampled = false);
/// Tensors to be filled with what `without_zeros` made of a tensor like this one.
Sparse empty_sparse(const SparseForm& form, const Tensor& like);
/// The tensor again, written to `out`.
void with_zeros_into(const Tensor& out, const Sparse& from);

}  // namespace cuop::dist
