#include <algorithm>
#include <vector>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/long_loop.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/sparse/sparse_kernels.h"

namespace cuop::kernels {

namespace {

constexpr int64_t kElementsPerTask = 32 << 10;
constexpr int64_t kFewestReads = 4;  ///< of a row of b, for which it is worth to be copied

int64_t rows_per_task(int64_t columns) {
  return std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(columns, 1));
}

/// Calls work(T(), Index()) with the types of the matrix.
template <class Work>
void visit_types(DType dtype, DType index_dtype, Work&& work) {
  const auto with_values = [&]<class T>(T value) {
    if (index_dtype == DType::kInt32) return work(value, int32_t());
    work(value, int64_t());
  };
  if (dtype == DType::kFloat32) return with_values(float());
  with_values(double());
}

/// From how many values each of so many rows has, behind it, to where each begins.
template <class Index>
void add_up(Index* position, int64_t rows) {
  in_pieces(rows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) position[i + 1] += position[i];
  });
}

/// The elements that are not zero of one row go to columns and values. Without branches, which
/// zeros in no order would make slow, each is written and the place behind counted on; so a block
/// goes through memory of its own.
template <class T, class Index>
void compress_row(const T* row, int64_t count, Index* columns, T* values) {
  constexpr int64_t kBlock = 256;
  Index block_columns[kBlock];
  T block_values[kBlock];
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t end = std::min(first + kBlock, count);
    int64_t found = 0;
    for (int64_t j = first; j < end; ++j) {
      block_columns[found] = static_cast<Index>(j);
      block_values[found] = row[j];
      found += row[j] != T(0) ? 1 : 0;
    }
    columns = std::copy_n(block_columns, found, columns);
    values = std::copy_n(block_values, found, values);
  }
}

}  // namespace

SparseMatrix compress_cpu(const Tensor& x, DType index_dtype) {
  const Tensor dense = contiguous(x);
  const int64_t rows = x.shape(0), width = x.shape(1);
  const Tensor positions = empty({rows + 1}, index_dtype);
  SparseMatrix result;
  visit_types(x.dtype(), index_dtype, [&]<class T, class Index>(T, Index) {
    const T* const from = dense.data<T>();
    auto* const position = positions.data<Index>();
    position[0] = 0;
    backend::parallel_for_each(rows, rows_per_task(width), [&](int64_t i) {
      const T* const row = from + i * width;
      position[i + 1] = static_cast<Index>(
          std::count_if(row, row + width, [](T value) { return value != T(0); }));
    });
    add_up(position, rows);
    const Tensor columns = empty({position[rows]}, index_dtype);
    const Tensor values = empty({position[rows]}, x.dtype());
    auto* const to_columns = columns.data<Index>();
    T* const to_values = values.data<T>();
    backend::parallel_for_each(rows, rows_per_task(width), [&](int64_t i) {
      compress_row(from + i * width, width, to_columns + position[i], to_values + position[i]);
    });
    result = SparseMatrix::trusted(SparseLayout::kCsr, x.shape(), positions, columns, values);
  });
  return result;
}

void expand_cpu(const SparseMatrix& csr, const Tensor& zeros) {
  visit_types(csr.dtype(), csr.index_dtype(), [&]<class T, class Index>(T, Index) {
    const auto* const position = csr.rows().data<Index>();
    const auto* const columns = csr.columns().data<Index>();
    const T* const values = csr.values().data<T>();
    T* const to = zeros.data<T>();
    const int64_t width = csr.shape()[1];
    backend::parallel_for_each(csr.shape()[0], rows_per_task(width), [&](int64_t i) {
      for (int64_t k = position[i]; k < position[i + 1]; ++k)
        to[i * width + columns[k]] = values[k];
    });
  });
}

Tensor row_numbers_cpu(const Tensor& positions, int64_t count) {
  const Tensor result = empty({count}, positions.dtype());
  visit_dtype(
      TypeList<int32_t, int64_t>{}, positions.dtype(), "sparse", [&]<class Index>(TypeTag<Index>) {
        const auto* const position = positions.data<Index>();
        auto* const numbers = result.data<Index>();
        Lookout lookout;
        for (int64_t i = 0; i + 1 < positions.size(); ++i) {
          std::fill(numbers + position[i], numbers + position[i + 1], static_cast<Index>(i));
          lookout.after(1 + position[i + 1] - position[i]);
        }
      });
  return result;
}

Tensor row_positions_cpu(const Tensor& row_numbers, int64_t rows) {
  const Tensor result = zeros({rows + 1}, row_numbers.dtype());
  visit_dtype(TypeList<int32_t, int64_t>{}, result.dtype(), "sparse",
              [&]<class Index>(TypeTag<Index>) {
                const auto* const numbers = row_numbers.data<Index>();
                auto* const position = result.data<Index>();
                in_pieces(row_numbers.size(), [&](int64_t begin, int64_t end) {
                  for (int64_t k = begin; k < end; ++k) ++position[numbers[k] + 1];
                });
                add_up(position, rows);
              });
  return result;
}

void sparse_product_cpu(const SparseMatrix& a, const Tensor& b, const Tensor& c) {
  visit_types(c.dtype(), a.index_dtype(), [&]<class T, class Index>(T, Index) {
    const RowProduct<T, Index> product{a.rows().data<Index>(),
                                       a.columns().data<Index>(),
                                       a.values().data<T>(),
                                       b.data<T>(),
                                       b.strides()[0],
                                       b.shape(0),
                                       c.data<T>(),
                                       c.strides()[0]};
    const SparseLoops<T>& loops = isa::choose(
        []<class Level>(Level) -> const SparseLoops<T>& { return sparse_loops<Level, T>(); });
    SparseLoop<T, Index> loop;
    if constexpr (sizeof(Index) == 4) {
      loop = loops.narrow;
    } else {
      loop = loops.wide;
    }
    const int64_t rows = c.shape(0), width = c.shape(1);
    const int64_t strips = divide_up(width, loops.strip);
    const int64_t blocks = std::min<int64_t>(rows, backend::thread_count());
    // How often a row of b is read for a block of rows of c.
    const int64_t reads = a.nonzeros() / (blocks * b.shape(0));
    const bool is_packed = strips > 1 && reads >= kFewestReads;
    const int64_t work = a.nonzeros() * width / (strips * blocks);
    const int64_t grain = std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(work, 1));
    backend::parallel_for(strips * blocks, grain, [&](int64_t begin, int64_t end) {
      std::vector<T> panel(is_packed ? static_cast<size_t>(loops.panel_rows * loops.strip) : 0);
      std::vector<Index> next(is_packed ? static_cast<size_t>(divide_up(rows, blocks)) : 0);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t block = i % blocks, first_column = i / blocks * loops.strip;
        const ProductPart part{block * rows / blocks, (block + 1) * rows / blocks, first_column,
                               std::min(loops.strip, width - first_column)};
        if (is_packed) {
          loop.packed(product, part, panel.data(), next.data());
        } else {
          loop.direct(product, part);
        }
      }
    });
  });
}

}  // namespace cuop::kernels
