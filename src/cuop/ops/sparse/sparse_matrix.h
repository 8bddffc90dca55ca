// Matrices of which only the elements that are not zero are kept, by rows (CSR) or one by one
// (COO).
//
// Worked example: [[0, 5, 0], [7, 0, 8]] is in CSR  rows (0, 1, 3), columns (1, 0, 2), values
// (5, 7, 8); in COO  rows (0, 1, 1), the rest alike.
#pragma once

#include <string_view>

#include "cuop/core/tensor.h"

namespace cuop {

enum class SparseLayout : uint8_t { kCsr, kCoo };
const char* name(SparseLayout layout);
/// "csr" or "coo"; ExecutionError "who: ..." for any other.
SparseLayout parse_sparse_layout(std::string_view text, const char* who);

/// DTypeError "who: ..." unless values of this dtype can be kept: float32 and float64.
void check_sparse_values(const char* who, DType dtype);
/// ShapeError "who: ..." unless it is the shape of a matrix.
void check_sparse_shape(const char* who, const Shape& shape);

/// A value: copies share their tensors, which nobody should write to. Elements are in row-major
/// order, no place twice; stored zeros are allowed.
class SparseMatrix {
 public:
  SparseMatrix() = default;
  /// `rows`: for kCsr the position of each row's first value and, behind them, the number of values
  /// (shape[0] + 1 numbers); for kCoo the row of each value. `columns`: the column of each. Both
  /// int32 or int64 alike; values float32 or float64; all of one dimension and on one device.
  /// DTypeError, DeviceError, ShapeError, and IndexError for numbers that describe no such matrix,
  /// for which those of a GPU are read by the host.
  SparseMatrix(SparseLayout layout, const Shape& shape, const Tensor& rows, const Tensor& columns,
               const Tensor& values);

  /// Of tensors without gaps that are known to describe a matrix: nothing is checked.
  static SparseMatrix trusted(SparseLayout layout, const Shape& shape, Tensor rows, Tensor columns,
                              Tensor values);

  bool is_defined() const { return values_.is_defined(); }
  SparseLayout layout() const { return layout_; }
  const Shape& shape() const { return shape_; }
  int64_t nonzeros() const { return values_.size(); }
  DType dtype() const { return values_.dtype(); }
  DType index_dtype() const { return columns_.dtype(); }
  Device device() const { return values_.device(); }
  /// The tensors that it was made of, without gaps.
  const Tensor& rows() const { return rows_; }
  const Tensor& columns() const { return columns_; }
  const Tensor& values() const { return values_; }

 private:
  SparseLayout layout_ = SparseLayout::kCsr;
  Shape shape_;
  Tensor rows_, columns_, values_;
};

}  // namespace cuop
