// The sums of a tile by fused multiplications and additions: each thread has some of its lines
// along both sides.
#pragma once

#include "cuop/ops/matmul/tile_product.cuh"

namespace cuop::jit {

/// Threads along the rows of a tile; the others are along its columns.
CUOP_FN constexpr int row_threads_of_tile(int threads) {
  int side = 1;
  while (4 * side * side <= threads) side *= 2;
  return side;
}

/// Which lines of a panel a thread has that is number `at` of `Side`: packs of neighbours where the
/// panel is kept along its lines, so that one access reads a pack.
template <class T, class Panel, int Side, int Own>
struct OwnLines {
  using Sum = ProductSum<T>;
  static constexpr int kMost = kAccessBytes / static_cast<int>(sizeof(T));
  static constexpr int kPack = Panel::kIsAlongDepth ? 1 : (Own < kMost ? Own : kMost);

  CUOP_FN static constexpr int line(int at, int own) {
    return (own / kPack * Side + at) * kPack + own % kPack;
  }
  /// Elements k to k + Depth of each line.
  template <int Depth>
  CUOP_FN static void load(Sum (&to)[Own][Depth], unsigned char* room, int at, int k) {
    if constexpr (Panel::kIsAlongDepth) {
#pragma unroll
      for (int own = 0; own < Own; ++own) {
        load_sums(to[own], Panel::element(room, line(at, own), k));
      }
    } else {
#pragma unroll
      for (int d = 0; d < Depth; ++d) {
#pragma unroll
        for (int own = 0; own < Own; own += kPack) {
          Sum pack[kPack];
          load_sums(pack, Panel::element(room, line(at, own), k + d));
#pragma unroll
          for (int j = 0; j < kPack; ++j) to[own + j][d] = pack[j];
        }
      }
    }
  }

 private:
  template <int Count>
  CUOP_FN static void load_sums(Sum (&to)[Count], const T* from) {
    T raw[Count];
    load_pack(raw, from);
#pragma unroll
    for (int j = 0; j < Count; ++j) to[j] = static_cast<Sum>(raw[j]);
  }
};

template <class T, class PanelA, class PanelB, int Tile, int Threads, bool IsConjugate>
class ThreadTile {
  using Sum = ProductSum<T>;
  static constexpr int kRowSide = row_threads_of_tile(Threads);
  static constexpr int kColumnSide = Threads / kRowSide;
  static constexpr int kOwnRows = Tile / kRowSide, kOwnColumns = Tile / kColumnSide;
  static_assert(kOwnRows > 0 && kOwnColumns > 0);
  /// Terms that are read together.
  static constexpr int kDepth = sizeof(Sum) >= 16 ? 1 : 16 / static_cast<int>(sizeof(Sum));
  using Rows = OwnLines<T, PanelA, kRowSide, kOwnRows>;
  using Columns = OwnLines<T, PanelB, kColumnSide, kOwnColumns>;

 public:
  static constexpr bool kIsSplit = false;

  CUOP_FN void take(unsigned char* room_a, unsigned char* room_b) {
#pragma unroll 1
    for (int k = 0; k < PanelA::kDepth; k += kDepth) {
      Sum a[kOwnRows][kDepth], b[kOwnColumns][kDepth];
      Rows::load(a, room_a, row_, k);
      Columns::load(b, room_b, column_, k);
#pragma unroll
      for (int d = 0; d < kDepth; ++d) {
#pragma unroll
        for (int i = 0; i < kOwnRows; ++i) {
#pragma unroll
          for (int j = 0; j < kOwnColumns; ++j) {
            sums_[i][j] = add_fused(sums_[i][j], conjugated<IsConjugate>(a[i][d]), b[j][d]);
          }
        }
      }
    }
  }

  /// Calls store(place, sum) for this thread's elements of the tile.
  template <class Store>
  CUOP_FN void finish(Store&& store) const {
#pragma unroll
    for (int i = 0; i < kOwnRows; ++i) {
#pragma unroll
      for (int j = 0; j < kOwnColumns; ++j) {
        store(TilePlace{Rows::line(row_, i), Columns::line(column_, j)}, sums_[i][j]);
      }
    }
  }

 private:
  const int row_ = static_cast<int>(threadIdx.x) / kColumnSide;
  const int column_ = static_cast<int>(threadIdx.x) % kColumnSide;
  Sum sums_[kOwnRows][kOwnColumns] = {};
};

}  // namespace cuop::jit
