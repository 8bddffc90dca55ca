// Internal: the frame of the products that BLAS does not compute. The output is cut into tiles;
// every tile gathers blocks of a and b into the accumulator's type, multiplies them there, and is
// scaled and rounded once at the end.
#pragma once

#include <algorithm>
#include <memory>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/ops/matmul/matmul_kernels.h"

namespace cuop::kernels {

/// A matrix of T somewhere in memory.
template <class T>
struct MatrixView {
  T* data;
  int64_t rows, columns, row_step, column_step;

  MatrixView block(int64_t row, int64_t column, int64_t height, int64_t width) const {
    return {data + row * row_step + column * column_step, height, width, row_step, column_step};
  }
};

template <class T>
MatrixView<T> matrix_view(const Tensor& t, int64_t offset) {
  const int r = t.ndim() - 2;
  return {t.data<std::remove_const_t<T>>() + offset, t.shape(r), t.shape(r + 1), t.strides()[r],
          t.strides()[r + 1]};
}

/// The largest tile and block that the product needs.
struct TileSizes {
  int64_t rows, columns, depth;
};
template <class Tile>
TileSizes tile_sizes(const Product& p) {
  const int r = p.c.ndim() - 2;
  return {std::min(p.c.shape(r), Tile::kRows), std::min(p.c.shape(r + 1), Tile::kColumns),
          std::min(p.a.shape(r + 1), Tile::kDepth)};
}

/// Not value-initialised: tiles write every element before they read it.
template <class T>
std::unique_ptr<T[]> scratch(int64_t count) {
  return std::unique_ptr<T[]>(new T[static_cast<size_t>(count)]);
}

/// `Tile` computes one tile and owns its scratch memory:
///   using Element, Result (of the operands and of c); static constexpr int64_t kRows, kColumns,
///   kDepth (largest tile and block); Tile(const Product&); void start(int64_t rows, int64_t
///   columns); void add(MatrixView<const Element> a, MatrixView<const Element> b);  // acc += a @ b
///   void finish(MatrixView<Result> c);                          // c <- alpha acc + beta c
template <class Tile>
void tiled_product(const Product& p) {
  using Element = typename Tile::Element;
  using Result = typename Tile::Result;
  const int r = p.c.ndim() - 2;
  const int64_t rows = p.c.shape(r), columns = p.c.shape(r + 1), depth = p.a.shape(r + 1);
  const BatchOffsets batch(p);
  int64_t height = std::min(rows, Tile::kRows), width = std::min(columns, Tile::kColumns);
  const auto tile_count = [&] {
    return batch.count() * divide_up(rows, height) * divide_up(columns, width);
  };
  // Smaller tiles when there are fewer than threads, as long as each is worth a thread's waking.
  while (tile_count() < backend::thread_count() && height * width * depth > (1 << 20)) {
    int64_t& longer = height >= width ? height : width;
    longer = (longer + 1) / 2;
  }
  const int64_t tiles_down = divide_up(rows, height);
  const int64_t tiles_across = divide_up(columns, width);
  const int64_t grain = 1 + (1 << 16) / std::max<int64_t>(1, height * width * depth);
  backend::parallel_for(tile_count(), grain, [&](int64_t begin, int64_t end) {
    Tile tile(p);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / tiles_across % tiles_down * height;
      const int64_t column = i % tiles_across * width;
      const int64_t h = std::min(height, rows - row), w = std::min(width, columns - column);
      const BatchOffsets::Offsets offsets = batch(i / (tiles_down * tiles_across));
      const auto a = matrix_view<const Element>(p.a, offsets.a);
      const auto b = matrix_view<const Element>(p.b, offsets.b);
      const auto c = matrix_view<Result>(p.c, offsets.c);
      tile.start(h, w);
      for (int64_t k = 0; k < depth; k += Tile::kDepth) {
        const int64_t d = std::min(Tile::kDepth, depth - k);
        tile.add(a.block(row, k, h, d), b.block(k, column, d, w));
      }
      tile.finish(c.block(row, column, h, w));
    }
  });
}

}  // namespace cuop::kernels
