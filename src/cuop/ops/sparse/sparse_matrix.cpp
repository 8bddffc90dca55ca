#include "cuop/ops/sparse/sparse_matrix.h"

#include <string>
#include <utility>

#include "cuop/core/enum_names.h"
#include "cuop/core/error.h"
#include "cuop/core/long_loop.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/output.h"

namespace cuop {

namespace {

constexpr const char* kLayoutNames[] = {"csr", "coo"};

/// The words by which users know the three tensors.
struct Names {
  const char *who, *rows, *columns;
};
Names names_of(SparseLayout layout) {
  if (layout == SparseLayout::kCsr) return {"sparse_csr", "indptr", "indices"};
  return {"sparse_coo", "rows", "columns"};
}

[[noreturn]] void refuse(const Names& names, const char* tensor, int64_t place, int64_t given,
                         const std::string& allowed) {
  throw IndexError(
      cat(names.who, ": ", tensor, "[", place, "] is ", given, ", it must be ", allowed));
}

/// Rows start one after the other, and their columns rise.
template <class Index>
void check_csr(const Names& names, const Shape& shape, const Tensor& rows, const Tensor& columns) {
  const auto* const position = rows.data<Index>();
  const auto* const column = columns.data<Index>();
  if (position[0] != 0) refuse(names, names.rows, 0, position[0], "0");
  Lookout lookout;
  for (int64_t i = 0; i < shape[0]; ++i) {
    const int64_t end = position[i + 1];
    if (end < position[i] || end > columns.size()) {
      refuse(names, names.rows, i + 1, end,
             cat("from ", position[i], " to ", columns.size(), ", the number of values"));
    }
    int64_t least = 0;
    for (int64_t k = position[i]; k < end; ++k) {
      const int64_t given = column[k];
      if (given < least || given >= shape[1]) {
        refuse(names, names.columns, k, given,
               cat("from ", least, " to ", shape[1] - 1, " as columns of a row rise"));
      }
      least = given + 1;
      lookout.after(1);
    }
    lookout.after(1);
  }
  if (position[shape[0]] != columns.size()) {
    refuse(names, names.rows, shape[0], position[shape[0]],
           cat(columns.size(), ", the number of values"));
  }
}

template <class Index>
void check_coo(const Names& names, const Shape& shape, const Tensor& rows, const Tensor& columns) {
  const auto* const row = rows.data<Index>();
  const auto* const column = columns.data<Index>();
  int64_t last_row = 0, least = 0;
  Lookout lookout;
  for (int64_t k = 0; k < columns.size(); ++k) {
    if (row[k] < last_row || row[k] >= shape[0]) {
      refuse(names, names.rows, k, row[k],
             cat("from ", last_row, " to ", shape[0] - 1, " as elements are in row-major order"));
    }
    if (row[k] > last_row) least = 0;
    if (column[k] < least || column[k] >= shape[1]) {
      refuse(names, names.columns, k, column[k],
             cat("from ", least, " to ", shape[1] - 1, " as columns of a row rise"));
    }
    last_row = row[k];
    least = int64_t{column[k]} + 1;
    lookout.after(1);
  }
}

}  // namespace

void check_sparse_values(const char* who, DType dtype) {
  if (dtype == DType::kFloat32 || dtype == DType::kFloat64) return;
  throw DTypeError(cat(who, ": values are ", dtype, "; needed is float32 or float64"));
}

void check_sparse_shape(const char* who, const Shape& shape) {
  if (shape.ndim() == 2 && shape[0] >= 0 && shape[1] >= 0) return;
  throw ShapeError(cat(who, ": shape ", shape, " was given; a matrix has 2 dimensions"));
}

const char* name(SparseLayout layout) { return kLayoutNames[static_cast<size_t>(layout)]; }

SparseLayout parse_sparse_layout(std::string_view text, const char* who) {
  return parse_name<SparseLayout>(cat(who, ": layout"), kLayoutNames, text);
}

SparseMatrix::SparseMatrix(SparseLayout layout, const Shape& shape, const Tensor& rows,
                           const Tensor& columns, const Tensor& values)
    : layout_(layout), shape_(shape) {
  const Names names = names_of(layout);
  check_sparse_shape(names.who, shape);
  check_sparse_values(names.who, values.dtype());
  common_device(names.who, {&rows, &columns, &values});
  const bool is_index = columns.dtype() == DType::kInt32 || columns.dtype() == DType::kInt64;
  if (!is_index || rows.dtype() != columns.dtype()) {
    throw DTypeError(cat(names.who, ": ", names.rows, " are ", rows.dtype(), ", ", names.columns,
                         " ", columns.dtype(), "; needed is int32 or int64 for both"));
  }
  const Shape wanted{layout == SparseLayout::kCsr ? shape[0] + 1 : values.size()};
  if (values.ndim() != 1 || columns.shape() != values.shape() || rows.shape() != wanted) {
    throw ShapeError(cat(names.who, ": ", names.rows, " ", rows.shape(), ", ", names.columns, " ",
                         columns.shape(), " and values ", values.shape(), " for shape ", shape,
                         "; needed are ", wanted, " and two of one length"));
  }
  const Tensor seen_rows = to_device(contiguous(rows), kCpu);
  const Tensor seen_columns = to_device(contiguous(columns), kCpu);
  const bool is_csr = layout == SparseLayout::kCsr;
  if (columns.dtype() == DType::kInt32) {
    (is_csr ? check_csr<int32_t> : check_coo<int32_t>)(names, shape, seen_rows, seen_columns);
  } else {
    (is_csr ? check_csr<int64_t> : check_coo<int64_t>)(names, shape, seen_rows, seen_columns);
  }
  rows_ = contiguous(rows);
  columns_ = contiguous(columns);
  values_ = contiguous(values);
}

SparseMatrix SparseMatrix::trusted(SparseLayout layout, const Shape& shape, Tensor rows,
                                   Tensor columns, Tensor values) {
  SparseMatrix result;
  result.layout_ = layout;
  result.shape_ = shape;
  result.rows_ = std::move(rows);
  result.columns_ = std::move(columns);
  result.values_ = std::move(values);
  return result;
}

}  // namespace cuop
