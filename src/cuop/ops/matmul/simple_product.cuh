// Products one element of a tile at a time: the plain kernel, with variants that leave out shared
// memory or the order in which neighbouring threads read neighbours.
#pragma once

#include "cuop/ops/matmul/tile_product.cuh"

namespace cuop::jit {

/// Element `index` of a square of `Tile` x `Tile`: neighbours are along the rows, or down the
/// columns.
template <int Tile>
struct SquarePlace {
  int row, column;
  CUOP_FN SquarePlace(int index, bool is_along_rows)
      : row(is_along_rows ? index / Tile : index % Tile),
        column(is_along_rows ? index % Tile : index / Tile) {}
};

/// A thread's elements of squares that follow each other along the depth of a matrix: read from
/// memory to registers, and from there, when the block is done with the last square, to shared
/// memory.
template <class T, int Tile, int Threads>
class Squares {
  static_assert(Threads % Tile == 0 && Tile * Tile % Threads == 0);
  static constexpr int kOwn = Tile * Tile / Threads, kLines = Threads / Tile;

 public:
  /// The first square begins at `data`, the next ones `step` elements further each.
  CUOP_FN Squares(const T* data, int64_t row_step, int64_t column_step, int64_t step,
                  bool is_along_rows)
      : first_(static_cast<int>(threadIdx.x), is_along_rows),
        row_turn_(is_along_rows ? kLines : 0),
        column_turn_(is_along_rows ? 0 : kLines),
        turn_step_(kLines * (is_along_rows ? row_step : column_step)),
        step_(step),
        data_(data + first_.row * row_step + first_.column * column_step) {}

  /// Reads the next square, zeros beyond its rows and columns.
  CUOP_FN void fetch(int rows, int columns) {
#pragma unroll
    for (int turn = 0; turn < kOwn; ++turn) {
      const bool is_there = row(turn) < rows && column(turn) < columns;
      values_[turn] = is_there ? data_[turn * turn_step_] : T{};
    }
    data_ += step_;
  }
  CUOP_FN void put(T (&room)[Tile][Tile + 1]) const {
#pragma unroll
    for (int turn = 0; turn < kOwn; ++turn) room[row(turn)][column(turn)] = values_[turn];
  }

 private:
  CUOP_FN int row(int turn) const { return first_.row + turn * row_turn_; }
  CUOP_FN int column(int turn) const { return first_.column + turn * column_turn_; }

  const SquarePlace<Tile> first_;
  const int row_turn_, column_turn_;
  const int64_t turn_step_, step_;
  const T* data_;
  T values_[kOwn];
};

template <int Most>
CUOP_FN int at_most(int64_t count) {
  return static_cast<int>(count < Most ? count : Most);
}

template <class T, int Tile, int Threads, bool InShared, bool IsCoalesced, bool IsConjugate>
CUOP_FN void multiply_simply(const TileProduct& p) {
  using Sum = ProductSum<T>;
  constexpr int kOwn = Tile * Tile / Threads;
#pragma unroll 1
  for (int64_t number = blockIdx.x; number < p.tiles; number += gridDim.x) {
    const ProductTile<T> tile = tile_of<T, Tile>(p, number);
    const int64_t first_row = tile.first_row, first_column = tile.first_column;
    const T* const a = tile.a + first_row * p.a_row;
    const T* const b = tile.b + first_column * p.b_column;
    const int64_t rows = p.rows - first_row, columns = p.columns - first_column;
    const auto own = [&](int turn) {
      return SquarePlace<Tile>(static_cast<int>(threadIdx.x) + turn * Threads,
                               (p.c_column == 1) == IsCoalesced);
    };
    Sum sums[kOwn] = {};
    if constexpr (InShared) {
      __shared__ T room_a[Tile][Tile + 1];
      __shared__ T room_b[Tile][Tile + 1];
      Squares<T, Tile, Threads> of_a(a, p.a_row, p.a_column, Tile * p.a_column,
                                     (p.a_column == 1) == IsCoalesced);
      Squares<T, Tile, Threads> of_b(b, p.b_row, p.b_column, Tile * p.b_row,
                                     (p.b_column == 1) == IsCoalesced);
      const int last_row = at_most<Tile>(rows), last_column = at_most<Tile>(columns);
      const auto fetch = [&](int64_t depth) {
        const int last = at_most<Tile>(p.depth - depth);
        of_a.fetch(last_row, last);
        of_b.fetch(last, last_column);
      };
      fetch(0);
#pragma unroll 1
      for (int64_t depth = 0; depth < p.depth; depth += Tile) {
        __syncthreads();  // what was there has been read
        of_a.put(room_a);
        of_b.put(room_b);
        __syncthreads();
        fetch(depth + Tile);
#pragma unroll
        for (int turn = 0; turn < kOwn; ++turn) {
          const SquarePlace<Tile> at = own(turn);
#pragma unroll
          for (int k = 0; k < Tile; ++k) {
            sums[turn] =
                add_fused(sums[turn], conjugated<IsConjugate>(static_cast<Sum>(room_a[at.row][k])),
                          static_cast<Sum>(room_b[k][at.column]));
          }
        }
      }
    } else {
#pragma unroll
      for (int turn = 0; turn < kOwn; ++turn) {
        const SquarePlace<Tile> at = own(turn);
        if (at.row >= rows || at.column >= columns) continue;
        const T* from_a = a + at.row * p.a_row;
        const T* from_b = b + at.column * p.b_column;
#pragma unroll 4
        for (int64_t k = 0; k < p.depth; ++k) {
          sums[turn] = add_fused(sums[turn],
                                 conjugated<IsConjugate>(static_cast<Sum>(from_a[k * p.a_column])),
                                 static_cast<Sum>(from_b[k * p.b_row]));
        }
      }
    }
#pragma unroll
    for (int turn = 0; turn < kOwn; ++turn) {
      const SquarePlace<Tile> at = own(turn);
      if (at.row < rows && at.column < columns) {
        store_scaled<T>(
            tile.c + (first_row + at.row) * p.c_row + (first_column + at.column) * p.c_column,
            p.alpha.as<Sum>(), sums[turn], p.beta.as<Sum>());
      }
    }
  }
}

}  // namespace cuop::jit
