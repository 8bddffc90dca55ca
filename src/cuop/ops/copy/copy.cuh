// Copies that exchange the axis along which elements lie one after the other: by square tiles in
// shared memory, so that what is read and what is written are both runs of neighbours. Elements are
// words of 1 to 16 bytes: no arithmetic is done on them.
#pragma once

#include "cuop/jit/kernels/elementwise.cuh"
#include "cuop/ops/copy/copy_arguments.cuh"

namespace cuop::jit {

template <class Word, int Tile>
CUOP_FN void transposed_copy(const TransposedCopy& a) {
  constexpr int kApart = kTransposeThreads / Tile;
  __shared__ Word words[Tile][Tile + 1];  // the odd pitch spreads a column over the banks
  const int x = static_cast<int>(threadIdx.x) % Tile, y = static_cast<int>(threadIdx.x) / Tile;
#pragma unroll 1
  for (int64_t tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {
    const int64_t rest = tile / a.across;
    const int64_t column = (tile - rest * a.across) * Tile;
    const int64_t matrix = rest / a.down;
    const int64_t row = (rest - matrix * a.down) * Tile;
    const PlaceOffsets<2> first = offsets_at(a.batch, matrix);
    const Word* const from = static_cast<const Word*>(a.from) + first.of[0];
    Word* const to = static_cast<Word*>(a.to) + first.of[1];
#pragma unroll
    for (int k = 0; k < Tile; k += kApart) {
      const int64_t r = row + y + k, c = column + x;
      if (r < a.rows && c < a.columns) words[y + k][x] = from[r * a.row_stride + c];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < Tile; k += kApart) {
      const int64_t r = row + x, c = column + y + k;
      if (r < a.rows && c < a.columns) to[c * a.column_stride + r] = words[x][y + k];
    }
    __syncthreads();
  }
}

}  // namespace cuop::jit
