// Products by plain loops, in one piece or in tiles: what callers get who ask for 'simple' or for a
// certain tile size. They need no BLAS library.
#include <algorithm>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/execution.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/dtype.h"
#include "cuop/ops/convert_internal.h"
#include "cuop/ops/matmul/product_arguments_internal.h"
#include "cuop/ops/matmul/tiled_product_internal.h"

namespace cuop::kernels {

namespace {

template <class T>
T conjugate_if(bool is_wanted, T value) {
  if constexpr (requires { value.imag(); }) {
    return is_wanted ? std::conj(value) : value;
  } else {
    return value;
  }
}

template <class T>
T scalar_as(const Scalar& value) {
  if constexpr (requires(T t) { t.imag(); }) {
    return static_cast<T>(value.to_complex());
  } else {
    return static_cast<T>(value.to_double());
  }
}

template <class T>
void scale(MatrixView<T> c, T beta) {
  for (int64_t i = 0; i < c.rows; ++i) {
    for (int64_t j = 0; j < c.columns; ++j) {
      T& value = c.data[i * c.row_step + j * c.column_step];
      value = beta == T(0) ? T(0) : value * beta;
    }
  }
}

/// c += alpha a b.
template <class T>
void add_product(T alpha, bool conjugate_a, MatrixView<const T> a, MatrixView<const T> b,
                 MatrixView<T> c) {
  for (int64_t i = 0; i < a.rows; ++i) {
    T* const row = c.data + i * c.row_step;
    for (int64_t k = 0; k < a.columns; ++k) {
      const T factor =
          alpha * conjugate_if(conjugate_a, a.data[i * a.row_step + k * a.column_step]);
      const T* const terms = b.data + k * b.row_step;
      if (b.column_step == 1 && c.column_step == 1) {
        for (int64_t j = 0; j < b.columns; ++j) row[j] += factor * terms[j];
      } else {
        for (int64_t j = 0; j < b.columns; ++j) {
          row[j * c.column_step] += factor * terms[j * b.column_step];
        }
      }
    }
  }
}

/// Rows of tiles are independent of each other; within one, tiles of b stay in the cache.
template <class T>
void loops(const Product& p, int64_t tile) {
  const BatchOffsets batch(p);
  const T alpha = scalar_as<T>(p.alpha), beta = scalar_as<T>(p.beta);
  const int r = p.c.ndim() - 2;
  const int64_t rows = p.c.shape(r), columns = p.c.shape(r + 1), depth = p.a.shape(r + 1);
  const bool is_whole = tile == 0;
  const int64_t height = is_whole ? rows : tile, width = is_whole ? columns : tile;
  const int64_t step = is_whole ? std::max<int64_t>(1, depth) : tile;
  const int64_t tiles_down = divide_up(rows, height);
  const auto work = [&](int64_t task) {
    const BatchOffsets::Offsets at = batch(task / tiles_down);
    const auto a = matrix_view<const T>(p.a, at.a), b = matrix_view<const T>(p.b, at.b);
    const auto c = matrix_view<T>(p.c, at.c);
    const int64_t i = task % tiles_down * height, h = std::min(height, rows - i);
    scale(c.block(i, 0, h, columns), beta);
    for (int64_t k = 0; k < depth; k += step) {
      const int64_t d = std::min(step, depth - k);
      for (int64_t j = 0; j < columns; j += width) {
        const int64_t w = std::min(width, columns - j);
        add_product(alpha, p.conjugate_a, a.block(i, k, h, d), b.block(k, j, d, w),
                    c.block(i, j, h, w));
      }
    }
  };
  const int64_t tasks = batch.count() * tiles_down;
  if (is_whole) {
    for (int64_t task = 0; task < tasks; ++task) work(task);
  } else {
    backend::parallel_for_each(tasks, 1, work);
  }
}

}  // namespace

void matmul_loops_cpu(Product& product) {
  visit_dtype(
      FloatComplexTypes{}, product.a.dtype(), "matmul (kernel on request)",
      [&]<class T>(TypeTag<T>) { loops<T>(product, backend::execution_options().kernel.tile); });
}

BatchOffsets::BatchOffsets(const Product& product)
    : shape_(batch_part(product.c.shape())),
      a_(batch_part(product.a.strides())),
      b_(batch_part(product.b.strides())),
      c_(batch_part(product.c.strides())),
      count_(element_count(shape_)) {}

BatchOffsets::Offsets BatchOffsets::operator()(int64_t index) const {
  Offsets offsets;
  for (int i = shape_.ndim() - 1; i >= 0; --i) {
    // The first axis takes what is left: most batches have one axis, and divisions are slow.
    const auto [rest, position] = i == 0 ? Divided{0, index} : divided(index, shape_[i]);
    index = rest;
    offsets.a += position * a_[i];
    offsets.b += position * b_[i];
    offsets.c += position * c_[i];
  }
  return offsets;
}

void matmul_cpu(Product& product) {
  const DType dtype = product.a.dtype();
  if (is_bool(dtype)) {
    matmul_bool_cpu(product);
  } else if (is_integer(dtype)) {
    matmul_integer_cpu(product);
  } else if (compute_dtype(dtype) != dtype) {
    matmul_half_cpu(product);
  } else {
    matmul_blas_cpu(product);
  }
}

}  // namespace cuop::kernels
