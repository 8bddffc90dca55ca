// Products of integer matrices in square tiles: a block brings the panels of its tile to shared
// memory, a step of the depth at a time, and each thread multiplies squares of them in registers.
#pragma once

#include "cuop/jit/kernels/product_sum.cuh"
#include "cuop/ops/matmul/matmul_arguments.cuh"

namespace cuop::jit {

/// The depth that is in shared memory at a time.
inline constexpr int kProductDepth = 16;
/// Neighbouring lines of one thread: one access of 16 bytes to a panel of 32-bit sums.
inline constexpr int kProductPack = 4;

/// The k-th of the lines of a tile that belong to a thread, whose place along the side is `at`.
CUOP_FN constexpr int product_line(int at, int k) {
  return (k / kProductPack * kProductSide + at) * kProductPack + k % kProductPack;
}

/// One tile's lines (rows of a, columns of b) on their way to shared memory, a step of the depth at
/// a time. A thread brings several elements a step, in turns; neighbouring threads read along the
/// depth where its elements are neighbours, else along the lines. Of a symmetric matrix only the
/// triangle is read in which no line is before its depth.
template <class T, int Tile, bool IsSymmetric>
class ProductPanel {
  using Sum = ProductSum<T>;
  static constexpr int kEach = Tile * kProductDepth / kProductThreads;

 public:
  CUOP_FN ProductPanel(const T* data, int64_t line_step, int64_t depth_step, int64_t first,
                       int64_t lines, int64_t depth)
      : data_(data), line_step_(line_step), depth_step_(depth_step), first_(first), depth_(depth) {
    const bool is_along_depth = depth_step == 1;
    const int thread = static_cast<int>(threadIdx.x);
    k_ = is_along_depth ? thread % kProductDepth : thread / Tile;
    line_ = is_along_depth ? thread / kProductDepth : thread % Tile;
    turn_k_ = is_along_depth ? 0 : kProductThreads / Tile;
    turn_line_ = is_along_depth ? kProductThreads / kProductDepth : 0;
    lines_ = lines - first < Tile ? static_cast<int>(lines - first) : Tile;
    if constexpr (!IsSymmetric) data_ += (first + line_) * line_step + k_ * depth_step;
  }

  /// Reads the step that begins at `depth`; zeros where the panel ends.
  CUOP_FN void fetch(int64_t depth) {
    const int64_t left = depth_ - depth;
    const int steps = left < kProductDepth ? static_cast<int>(left) : kProductDepth;
#pragma unroll
    for (int turn = 0; turn < kEach; ++turn) {
      const int k = k_ + turn * turn_k_, line = line_ + turn * turn_line_;
      held_[turn] = k < steps && line < lines_ ? static_cast<Sum>(*address(depth, turn)) : Sum(0);
    }
    if constexpr (!IsSymmetric) data_ += kProductDepth * depth_step_;
  }

  template <class Room>
  CUOP_FN void keep(Room& room) const {
#pragma unroll
    for (int turn = 0; turn < kEach; ++turn) {
      room[k_ + turn * turn_k_][line_ + turn * turn_line_] = held_[turn];
    }
  }

 private:
  CUOP_FN const T* address(int64_t depth, int turn) const {
    if constexpr (IsSymmetric) {
      const int64_t line = first_ + line_ + turn * turn_line_, k = depth + k_ + turn * turn_k_;
      return data_ + (line < k ? k : line) * line_step_ + (line < k ? line : k) * depth_step_;
    } else {
      return data_ + turn * (turn_line_ * line_step_ + turn_k_ * depth_step_);
    }
  }

  const T* data_;  ///< of a symmetric matrix its first element, else where this thread reads next
  int64_t line_step_, depth_step_, first_, depth_;
  int k_, line_, turn_k_, turn_line_, lines_;
  Sum held_[kEach];
};

/// This thread's lines of a panel at one depth.
template <int Own, class Sum>
CUOP_FN void load_lines(Sum (&to)[Own], const Sum* line, int at) {
#pragma unroll
  for (int k = 0; k < Own; k += kProductPack) {
    Sum pack[kProductPack];
    load_pack(pack, line + product_line(at, k));
#pragma unroll
    for (int j = 0; j < kProductPack; ++j) to[k + j] = pack[j];
  }
}

/// Each thread has Own x Own elements of a tile; of a symmetric a only the lower triangle is read.
template <class T, int Own, bool IsSymmetric>
CUOP_FN void multiply_integers(const IntegerProduct& p) {
  using Sum = ProductSum<T>;
  constexpr int kTile = kProductSide * Own;
  alignas(16) __shared__ Sum room_a[kProductDepth][kTile + kProductPack];
  alignas(16) __shared__ Sum room_b[kProductDepth][kTile + kProductPack];
  const int at_row = static_cast<int>(threadIdx.x) / kProductSide;
  const int at_column = static_cast<int>(threadIdx.x) % kProductSide;
#pragma unroll 1
  for (int64_t tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
    const int64_t rest = tile / p.column_tiles;
    const int64_t first_column = (tile - rest * p.column_tiles) * kTile;
    const int64_t place = rest / p.row_tiles;
    const int64_t first_row = (rest - place * p.row_tiles) * kTile;
    const PlaceOffsets<3> offsets = offsets_at(p.batch, place);
    T* const c = static_cast<T*>(p.c) + offsets.of[0];
    const T* const a = static_cast<const T*>(p.a) + offsets.of[1];
    const T* const b = static_cast<const T*>(p.b) + offsets.of[2];
    ProductPanel<T, kTile, IsSymmetric> panel_a(a, p.a_row, p.a_column, first_row, p.rows, p.depth);
    ProductPanel<T, kTile, false> panel_b(b, p.b_column, p.b_row, first_column, p.columns, p.depth);
    Sum sums[Own][Own] = {};
    panel_a.fetch(0);
    panel_b.fetch(0);
#pragma unroll 1
    for (int64_t depth = 0; depth < p.depth; depth += kProductDepth) {
      __syncthreads();  // what was there has been read
      panel_a.keep(room_a);
      panel_b.keep(room_b);
      __syncthreads();
      // The next step's elements are on the way while this one's are multiplied.
      panel_a.fetch(depth + kProductDepth);
      panel_b.fetch(depth + kProductDepth);
#pragma unroll 2
      for (int k = 0; k < kProductDepth; ++k) {
        Sum of_a[Own], of_b[Own];
        load_lines(of_a, room_a[k], at_row);
        load_lines(of_b, room_b[k], at_column);
#pragma unroll
        for (int i = 0; i < Own; ++i) {
#pragma unroll
          for (int j = 0; j < Own; ++j) sums[i][j] = add_product<T>(sums[i][j], of_a[i], of_b[j]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < Own; ++i) {
      const int64_t row = first_row + product_line(at_row, i);
#pragma unroll
      for (int j = 0; j < Own; ++j) {
        const int64_t column = first_column + product_line(at_column, j);
        if (row < p.rows && column < p.columns) {
          store_scaled(c + row * p.c_row + column * p.c_column, static_cast<Sum>(p.alpha),
                       sums[i][j], static_cast<Sum>(p.beta));
        }
      }
    }
  }
}

}  // namespace cuop::jit
