#include <algorithm>
#include <limits>
#include <optional>

#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/empty.h"
#include "cuop/ops/einsum/pair_product_internal.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/matmul.h"
#include "cuop/ops/reduce/reduce.h"

namespace cuop::pairwise {

namespace {

/// The dimension of each index in `given`; -1 for those it lacks.
std::vector<int> dims_of(const Indices& given, const Indices& wanted) {
  std::vector<int> dims;
  for (const int index : wanted) {
    int dim = -1;
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i] == index) dim = static_cast<int>(i);
    }
    dims.push_back(dim);
  }
  return dims;
}

/// Dimensions in the order of `wanted`, of size 1 for what x lacks.
Tensor expanded(const NamedTensor& x, const Indices& wanted) {
  Layout layout{{}, {}, x.tensor.layout().offset};
  for (const int dim : dims_of(x.indices, wanted)) {
    layout.shape.push_back(dim < 0 ? 1 : x.tensor.shape(dim));
    layout.strides.push_back(dim < 0 ? 0 : x.tensor.strides()[dim]);
  }
  return x.tensor.with_layout(layout);
}

/// [batch..., rows, columns]; a copy, in which the elements that follow each other in x still do,
/// where strides do not allow a view.
Tensor matrices(const NamedTensor& x, const Indices& batch, const Indices& rows,
                const Indices& columns) {
  if (const auto layout = as_matrices(x.named(), batch, rows, columns)) {
    return x.tensor.with_layout(*layout);
  }
  const Indices lying = by_stride(x.named(), x.indices);
  const bool is_transposed = has_index(rows, lying.back());
  const Indices order = is_transposed ? joined(batch, columns, rows) : joined(batch, rows, columns);
  const NamedTensor copied{clone(expanded(x, order)), order};
  return copied.tensor.with_layout(*as_matrices(copied.named(), batch, rows, columns));
}

/// Many short dot products, for each of which BLAS would be called: up to this length products that
/// are kept and then added up are quicker (100000 of 8 elements 12 times, 10000 of 256 not).
constexpr int64_t kShortDot = 128;

/// The elements of those of x's dimensions that are called so.
double extent(const Layout& layout, const Indices& given, const Indices& wanted) {
  double count = 1;
  for (const int dim : dims_of(given, wanted)) {
    if (dim >= 0) count *= static_cast<double>(layout.shape[dim]);
  }
  return count;
}

bool are_short_dots(const Named& left, const PairIndices& pair, DType dtype, Device device) {
  if (!pair.left.empty() || !pair.right.empty() || pair.batch.empty()) return false;
  const bool rounds_once =
      (is_floating(dtype) || is_complex(dtype)) && compute_dtype(dtype) == dtype;
  const double length = extent(left.layout, left.indices, pair.summed);
  return rounds_once && device.is_cpu() && length > 0 && length <= kShortDot;
}

void add_short_dots(const NamedTensor& left, const NamedTensor& right, const PairIndices& pair,
                    const NamedTensor& target) {
  const Indices all = joined(pair.batch, pair.summed, {});
  const Tensor products = multiply(expanded(left, all), expanded(right, all));
  std::vector<int64_t> axes;
  for (size_t i = pair.batch.size(); i < all.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  const Tensor sums = expanded(target, pair.batch);
  sum(products, axes, false, SumMode::kPlain, &sums);
}

int64_t batch_size(const Tensor& stack) {
  int64_t count = 1;
  for (int dim = 0; dim + 2 < stack.ndim(); ++dim) count *= stack.shape(dim);
  return count;
}

std::optional<Layout> with_one_batch(const Tensor& stack) {
  const int rows = stack.ndim() - 2;
  return try_reshape(stack.layout(), {batch_size(stack), stack.shape(rows), stack.shape(rows + 1)});
}

/// Stacks whose leading dimensions are one, where that is possible for all three.
void merge_batch(Tensor& a, Tensor& b, Tensor& c) {
  const auto is_mergeable = [&](const Tensor& x) {
    return batch_size(x) == batch_size(c) || batch_size(x) == 1;
  };
  if (a.ndim() < 4 || !is_mergeable(a) || !is_mergeable(b)) return;
  const auto of_a = with_one_batch(a), of_b = with_one_batch(b), of_c = with_one_batch(c);
  if (!of_a || !of_b || !of_c) return;
  a = a.with_layout(*of_a);
  b = b.with_layout(*of_b);
  c = c.with_layout(*of_c);
}

}  // namespace

void multiply_pair(const NamedTensor& left, const NamedTensor& right, const Indices& result,
                   const Tensor& out) {
  const DType dtype = left.tensor.dtype();
  if (dtype != out.dtype() &&
      !pair_indices(left.indices, right.indices, result).is_matrix_product()) {
    return multiply_pair({cast(left.tensor, out.dtype()), left.indices},
                         {cast(right.tensor, out.dtype()), right.indices}, result, out);
  }
  const PairOrder order = order_of(left.named(), right.named(), result, out.layout(), out.device());
  const auto& [batch, rows, summed, columns] = order.indices;
  if (summed.empty()) {
    multiply(expanded(left, result), expanded(right, result), &out);
    return;
  }
  const NamedTensor target{out, result};
  if (are_short_dots(left.named(), order.indices, dtype, out.device())) {
    return add_short_dots(left, right, order.indices, target);
  }
  Tensor a = matrices(left, batch, rows, summed);
  Tensor b = matrices(right, batch, summed, columns);
  const auto there = as_matrices(target.named(), batch, rows, columns);
  if (there) {
    Tensor c = out.with_layout(*there);
    merge_batch(a, b, c);
    matmul(a, b, {.dtype = out.dtype()}, &c);
    return;
  }
  const Indices made = joined(batch, rows, columns);
  const NamedTensor landing{empty(expanded(target, made).shape(), out.dtype(), out.device()), made};
  Tensor c = landing.tensor.with_layout(*as_matrices(landing.named(), batch, rows, columns));
  merge_batch(a, b, c);
  matmul(a, b, {.dtype = out.dtype()}, &c);
  copy_into(out, expanded(landing, result));
}

Tensor sum_to(const NamedTensor& x, const Indices& result) {
  std::vector<int64_t> axes;
  Indices kept;
  for (size_t dim = 0; dim < x.indices.size(); ++dim) {
    if (has_index(result, x.indices[dim])) {
      kept.push_back(x.indices[dim]);
    } else {
      axes.push_back(static_cast<int64_t>(dim));
    }
  }
  Tensor sums = x.tensor;
  if (!axes.empty()) {
    const DType dtype = x.tensor.dtype();
    sums = is_bool(dtype) ? any(x.tensor, axes) : cast(sum(x.tensor, axes), dtype);
  }
  return expanded({sums, kept}, result);
}

PairWork pair_work(const Named& left, const Named& right, const Indices& result, const Layout& out,
                   DType dtype, Device device) {
  const PairOrder order = order_of(left, right, result, out, device);
  const auto& [batch, rows, summed, columns] = order.indices;
  if (summed.empty()) return {};
  if (are_short_dots(left, order.indices, dtype, device)) {
    return {extent(left.layout, left.indices, joined(batch, summed, {})), {}};
  }
  PairWork work{most_copied(left, batch, rows, summed) +
                most_copied(right, batch, summed, columns) +
                most_copied({out, result}, batch, rows, columns)};
  const auto count = [](const Named& x, const Indices& wanted) {
    return static_cast<int64_t>(std::min(extent(x.layout, x.indices, wanted), 0x1p62));
  };
  const Named made{out, result};
  work.product =
      ProductExtents{count(made, rows),  count(made, columns),    count(left, summed),
                     count(made, batch), count(left, batch) == 1, count(right, batch) == 1};
  return work;
}

namespace {

/// Whether what is kept of x comes row by row: sums are then made in their place.
bool lies_in_order(const Named& x, const Indices& kept) {
  int64_t before = std::numeric_limits<int64_t>::max();
  for (size_t dim = 0; dim < x.indices.size(); ++dim) {
    const int number = static_cast<int>(dim);
    if (!has_index(kept, x.indices[dim]) || x.layout.shape[number] == 1) continue;
    const int64_t step = x.layout.strides[number];
    if (step <= 0 || step > before) return false;
    before = step;
  }
  return true;
}

}  // namespace

double sum_scratch(const Named& x, const Indices& result, DType dtype) {
  if (x.indices.size() == result.size()) return 0;
  // Sums are made in a wider dtype and then converted; "or" is found as a number.
  const DType added = is_integer(dtype) ? DType::kInt64 : compute_dtype(dtype);
  const bool is_narrow = compute_dtype(dtype) != dtype, is_whole = is_integer(dtype);
  const bool is_converted = is_whole && itemsize(added) != itemsize(dtype);
  const bool has_states = is_narrow || is_bool(dtype) || !lies_in_order(x, result);
  const auto bytes = static_cast<double>(itemsize(added));
  const double fill = x.layout.size() == 0 ? bytes : 0.0;  // the number that stands for no element
  return fill + bytes * (int{is_converted} + int{has_states}) * extent(x.layout, x.indices, result);
}

Layout sum_layout(const Named& x, const Indices& result) {
  if (x.indices.size() != result.size()) {
    Shape shape;
    Indices kept;
    for (size_t dim = 0; dim < x.indices.size(); ++dim) {
      if (!has_index(result, x.indices[dim])) continue;
      kept.push_back(x.indices[dim]);
      shape.push_back(x.layout.shape[static_cast<int>(dim)]);
    }
    return sum_layout({contiguous_layout(shape), kept}, result);
  }
  Layout layout{{}, {}, x.layout.offset};
  for (const int dim : dims_of(x.indices, result)) {
    layout.shape.push_back(x.layout.shape[dim]);
    layout.strides.push_back(x.layout.strides[dim]);
  }
  return layout;
}

Tensor diagonal_view(const Tensor& x, const Indices& given, const Indices& wanted) {
  Layout layout{{}, {}, x.layout().offset};
  for (const int index : wanted) {
    int64_t size = 0, stride = 0;
    for (size_t dim = 0; dim < given.size(); ++dim) {
      if (given[dim] != index) continue;
      size = x.shape(static_cast<int>(dim));
      stride += x.strides()[static_cast<int>(dim)];
    }
    layout.shape.push_back(size);
    layout.strides.push_back(stride);
  }
  return x.with_layout(layout);
}

}  // namespace cuop::pairwise
