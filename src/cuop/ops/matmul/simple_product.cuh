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

/// A square of a matrix to shared memory, zeros beyond its end.
template <class T, int Tile, int Threads>
CUOP_FN void bring_square(T (&room)[Tile][Tile + 1], const T* data, int64_t row_step,
                          int64_t column_step, int64_t rows, int64_t columns, bool is_coalesced) {
#pragma unroll
  for (int index = static_cast<int>(threadIdx.x); index < Tile * Tile; index += Threads) {
    const SquarePlace<Tile> at(index, (column_step == 1) == is_coalesced);
    const bool is_there = at.row < rows && at.column < columns;
    room[at.row][at.column] = is_there ? data[at.row * row_step + at.column * column_step] : T{};
  }
}

template <class T, int Tile, int Threads, bool InShared, bool IsCoalesced, bool IsConjugate>
CUOP_FN void multiply_simply(const TileProduct& p) {
  using Sum = ProductSum<T>;
  constexpr int kOwn = Tile * Tile / Threads;
#pragma unroll 1
  for (int64_t number = blockIdx.x; number < p.tiles; number += gridDim.x) {
    int64_t tile_row, tile_column, place;
    place_tile(p, number, tile_row, tile_column, place);
    const int64_t first_row = tile_row * Tile, first_column = tile_column * Tile;
    const PlaceOffsets<3> offsets = offsets_at(p.batch, place);
    T* const c = static_cast<T*>(p.c) + offsets.of[0];
    const T* const a = static_cast<const T*>(p.a) + offsets.of[1] + first_row * p.a_row;
    const T* const b = static_cast<const T*>(p.b) + offsets.of[2] + first_column * p.b_column;
    const int64_t rows = p.rows - first_row, columns = p.columns - first_column;
    const auto own = [&](int turn) {
      return SquarePlace<Tile>(static_cast<int>(threadIdx.x) + turn * Threads,
                               (p.c_column == 1) == IsCoalesced);
    };
    Sum sums[kOwn] = {};
    if constexpr (InShared) {
      __shared__ T room_a[Tile][Tile + 1];
      __shared__ T room_b[Tile][Tile + 1];
#pragma unroll 1
      for (int64_t depth = 0; depth < p.depth; depth += Tile) {
        __syncthreads();  // what was there has been read
        bring_square<T, Tile, Threads>(room_a, a + depth * p.a_column, p.a_row, p.a_column, rows,
                                       p.depth - depth, IsCoalesced);
        bring_square<T, Tile, Threads>(room_b, b + depth * p.b_row, p.b_row, p.b_column,
                                       p.depth - depth, columns, IsCoalesced);
        __syncthreads();
#pragma unroll
        for (int turn = 0; turn < kOwn; ++turn) {
          const SquarePlace<Tile> at = own(turn);
#pragma unroll 4
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
            c + (first_row + at.row) * p.c_row + (first_column + at.column) * p.c_column,
            p.alpha.as<Sum>(), sums[turn], p.beta.as<Sum>());
      }
    }
  }
}

}  // namespace cuop::jit
