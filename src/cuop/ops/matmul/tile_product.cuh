// Products by square tiles: a block brings panels of its tile to shared memory, several steps of
// the depth ahead of the one that is multiplied, and its threads add up products in registers.
#pragma once

#include "cuop/ops/matmul/tile_panel.cuh"

namespace cuop::jit {

/// sum + a * b with one rounding for each real product.
template <class Sum>
CUOP_FN Sum add_fused(Sum sum, Sum a, Sum b) {
  if constexpr (is_complex_type<Sum>) {
    return {add_fused(add_fused(sum.real(), a.real(), b.real()), -a.imag(), b.imag()),
            add_fused(add_fused(sum.imag(), a.real(), b.imag()), a.imag(), b.real())};
  } else if constexpr (sizeof(Sum) == 4) {
    return ::fmaf(a, b, sum);
  } else {
    return math::fma(a, b, sum);
  }
}
template <bool IsConjugate, class Sum>
CUOP_FN Sum conjugated(Sum value) {
  if constexpr (IsConjugate)
    return {value.real(), -value.imag()};
  else
    return value;
}

/// Each step has a place in a ring of `Stages` rooms in shared memory, each with a panel of a and
/// one of b.
template <class PanelA, class PanelB, int Stages>
struct StageRing {
  static constexpr int kStageBytes = PanelA::kBytes + PanelB::kBytes;
  CUOP_FN static unsigned char* room_a(unsigned step) {
    return block_room<kStageBytes * Stages>() + step % Stages * kStageBytes;
  }
  CUOP_FN static unsigned char* room_b(unsigned step) { return room_a(step) + PanelA::kBytes; }
};

/// Steps that threads copy for themselves.
template <class PanelA, class PanelB, int Stages>
class ThreadLoads {
  using Ring = StageRing<PanelA, PanelB, Stages>;
  struct Copies : ThreadCopies<(PanelA::kTurns + PanelB::kTurns) * Stages> {
    static constexpr bool kAreStarted = true;
  };

 public:
  CUOP_FN void start(unsigned step, bool is_there, PanelA& a, PanelB& b) {
    if (is_there) {
      a.fetch(Ring::room_a(step), copies_);
      b.fetch(Ring::room_b(step), copies_);
    }
    copies_.close_group();
  }
  CUOP_FN void wait(unsigned) {
    copies_.template wait<(Stages > 1 ? Stages - 2 : 0)>();
    __syncthreads();
  }

 private:
  Copies copies_;
};

/// Steps whose rows the copy engine brings; those at the edges, where rows end early, are copied by
/// the threads.
template <class PanelA, class PanelB, int Stages>
class RowLoads {
  using Ring = StageRing<PanelA, PanelB, Stages>;
  struct NoCopies {
    static constexpr bool kAreStarted = false;
  };

 public:
  CUOP_FN RowLoads() {
    if (threadIdx.x == 0) {
#pragma unroll
      for (int stage = 0; stage < Stages; ++stage) arrivals()[stage].prepare();
    }
    __syncthreads();
  }
  CUOP_FN void start(unsigned step, bool is_there, PanelA& a, PanelB& b) {
    if (!is_there) return;
    const bool is_whole_a = a.is_whole(), is_whole_b = b.is_whole();
    RowArrival& arrival = arrivals()[step % Stages];
    if (threadIdx.x < 32) {
      if (threadIdx.x == 0) {
        arrival.expect((is_whole_a ? PanelA::kWholeBytes : 0) +
                       (is_whole_b ? PanelB::kWholeBytes : 0));
      }
      __syncwarp();
      if (is_whole_a) a.fetch_rows(Ring::room_a(step), arrival);
      if (is_whole_b) b.fetch_rows(Ring::room_b(step), arrival);
    }
    if (is_whole_a && is_whole_b) return;
    NoCopies none;
    if (!is_whole_a) a.fetch(Ring::room_a(step), none);
    if (!is_whole_b) b.fetch(Ring::room_b(step), none);
    before_later_rows();
  }
  CUOP_FN void wait(unsigned step) {
    arrivals()[step % Stages].wait(step / Stages);
    __syncthreads();
  }

 private:
  CUOP_FN static RowArrival* arrivals() {
    __shared__ RowArrival all[Stages];
    return all;
  }
};

/// A tile of a product: its first row and column, and its matrices.
template <class T>
struct ProductTile {
  int64_t first_row, first_column;
  const T *a, *b;
  T* c;
};

/// Of a stack of matrices of tiles: which matrix, and the row and the column in it.
struct TileNumbers {
  int64_t matrix, row, column;
};

/// Of the tile of that number. `Together` rows are gone through together: neighbours in number
/// share panels, so that these are read from the cache.
template <int64_t Together>
CUOP_FN TileNumbers numbers_of(int64_t number, int64_t row_tiles, int64_t column_tiles) {
  const int64_t in_matrix = row_tiles * column_tiles;
  const int64_t matrix = quotient(number, in_matrix), at = number - matrix * in_matrix;
  const int64_t first = quotient(at, Together * column_tiles) * Together;
  const int64_t left = row_tiles - first, height = left < Together ? left : Together;
  const int64_t in_group = at - first * column_tiles;
  const int64_t column = quotient(in_group, height);
  return {matrix, first + in_group - column * height, column};
}

/// The place of a tile.
template <class T, int Tile>
CUOP_FN ProductTile<T> tile_of(const TileProduct& p, int64_t number) {
  const TileNumbers tile = numbers_of<8>(number, p.row_tiles, p.column_tiles);
  const PlaceOffsets<3> offsets = offsets_at(p.batch, tile.matrix);
  return {tile.row * Tile, tile.column * Tile, static_cast<const T*>(p.a) + offsets.of[1],
          static_cast<const T*>(p.b) + offsets.of[2], static_cast<T*>(p.c) + offsets.of[0]};
}

/// Of an element in a tile.
struct TilePlace {
  int row, column;
};

/// One element of a product without any parts; 0 outside of it.
template <class Sum, class T>
CUOP_FN Sum plain_sum(const TileProduct& p, const T* a, const T* b, int64_t row, int64_t column) {
  Sum sum(0);
  if (row >= p.rows || column >= p.columns) return sum;
  CUOP_ROLLED
  for (int64_t k = 0; k < p.depth; ++k) {
    sum = add_fused(sum, static_cast<Sum>(a[row * p.a_row + k * p.a_column]),
                    static_cast<Sum>(b[k * p.b_row + column * p.b_column]));
  }
  return sum;
}

/// `SumsOf` are the tile's sums of all threads of the block: ThreadTile or UnitTile.
template <template <class, class, class, int, int, bool> class SumsOf,
          template <class, class, int> class LoadsOf, class T, int Tile, int Threads, int Stages,
          class ReadingA, class ReadingB, bool IsConjugate>
CUOP_FN void multiply_tiles(const TileProduct& p) {
  using PanelA = TilePanel<T, Tile, Threads, ReadingA>;
  using PanelB = TilePanel<T, Tile, Threads, ReadingB>;
  using Ring = StageRing<PanelA, PanelB, Stages>;
  using Sums = SumsOf<T, PanelA, PanelB, Tile, Threads, IsConjugate>;
  using Sum = ProductSum<T>;
  constexpr int64_t kDepth = PanelA::kDepth;
  LoadsOf<PanelA, PanelB, Stages> loads;
  unsigned step = 0;  // of all tiles of this block together
#pragma unroll 1
  for (int64_t number = blockIdx.x; number < p.tiles; number += gridDim.x) {
    const ProductTile<T> tile = tile_of<T, Tile>(p, number);
    PanelA panel_a(tile.a, p.a_row, p.a_column, tile.first_row, p.rows, p.depth);
    PanelB panel_b(tile.b, p.b_column, p.b_row, tile.first_column, p.columns, p.depth);
    Sums sums;
    const auto start_next = [&](unsigned at, bool is_there) {
      loads.start(at, is_there, panel_a, panel_b);
      panel_a.advance();
      panel_b.advance();
    };
    __syncthreads();      // the tile before has been read
    int64_t started = 0;  // depth that is on its way
#pragma unroll 1
    for (int ahead = 0; ahead < Stages - 1; ++ahead, started += kDepth) {
      start_next(step + ahead, started < p.depth);
    }
#pragma unroll 1
    for (int64_t depth = 0; depth < p.depth; depth += kDepth, started += kDepth, ++step) {
      if constexpr (Stages == 1) start_next(step, true);
      loads.wait(step);
      if constexpr (Stages > 1) start_next(step + Stages - 1, started < p.depth);
      sums.take(Ring::room_a(step), Ring::room_b(step));
      if constexpr (Stages == 1) __syncthreads();
    }
    const auto store = [&](const TilePlace& at, Sum sum) {
      const int64_t row = tile.first_row + at.row, column = tile.first_column + at.column;
      if (row >= p.rows || column >= p.columns) return;
      store_scaled<T>(tile.c + row * p.c_row + column * p.c_column, p.alpha.as<Sum>(), sum,
                      p.beta.as<Sum>());
    };
    if constexpr (Sums::kIsSplit) {
      // A number that is not finite, or too large to be split, has no parts: once more without.
      if (!sums.are_finite()) {
        CUOP_ROLLED
        for (int n = 0; n < Sums::kCount; ++n) {
          const TilePlace at = sums.place(n);
          store(at, plain_sum<Sum>(p, tile.a, tile.b, tile.first_row + at.row,
                                   tile.first_column + at.column));
        }
        continue;
      }
    }
    sums.finish(store);
  }
}

}  // namespace cuop::jit
