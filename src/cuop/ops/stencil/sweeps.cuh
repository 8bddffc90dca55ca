// Several sweeps of a stencil in one pass over memory: the cells of a tile stay in a block's
// registers and are swept again and again. At the tile's edges neighbours are missing, so that
// after each sweep `Radius` cells less on every side are valid; neighbouring tiles overlap by as
// many and compute those cells as well. A cell is the same operations in the same order as in
// single sweeps.
//
// A warp has a strip: each thread some neighbouring columns of its rows. Its neighbours to the left
// and right are other lanes'; the rows above and below come through shared memory.
#pragma once

#include "cuop/core/divide_up.h"
#include "cuop/jit/kernels/block_copy.cuh"
#include "cuop/ops/stencil/stencil.cuh"

namespace cuop::jit {

/// Where a weight applies.
template <int Row, int Column>
struct At {};

/// What lanes hand to each other.
template <int Bytes>
struct LaneWord {
  using Type = unsigned;
};
template <>
struct LaneWord<8> {
  using Type = unsigned long long;
};

/// The value of another lane, `apart` lanes to the left (negative) or right.
template <class T>
CUOP_FN T of_lane(T value, int apart) {
  using Word = typename LaneWord<sizeof(T)>::Type;
  const int lane = static_cast<int>(threadIdx.x) % 32 + apart;
  return __builtin_bit_cast(T,
                            __shfl_sync(0xffffffffu, __builtin_bit_cast(Word, value), lane & 31));
}

/// A row of a thread's cells with `Radius` neighbours on each side.
template <class T, int Each, int Radius>
struct SweptRow {
  T cells[Each + 2 * Radius];

  /// After the thread's own have been set. All lanes come here.
  CUOP_FN void fetch_sides() {
#pragma unroll
    for (int k = 0; k < Radius; ++k) {
      cells[k] = of_lane(cells[Each + k], -1);
      cells[Radius + Each + k] = of_lane(cells[Radius + k], 1);
    }
  }
};

template <class T, int Radius, class... Taps>
struct SweptCell;

/// The sum over the taps of the cell `column` of a row, in their order. `rows` begins `Radius` rows
/// above.
template <class T, int Radius, int... Row, int... Column>
struct SweptCell<T, Radius, At<Row, Column>...> {
  template <class Rows>
  CUOP_FN static T at(const Rows* rows, int column, const SweepArguments& a) {
    T sum = -T(0);
    int n = 0;
    ((sum = sum + *reinterpret_cast<const T*>(a.weight[n++]) *
                      rows[Radius + Row].cells[Radius + column + Column]),
     ...);
    return sum;
  }
};

/// What a kernel of whole grids, in which nothing lies between two rows, knows when it is compiled:
/// registers are scarce.
template <bool IsPart>
CUOP_FN StencilGrid known(StencilGrid grid) {
  if constexpr (!IsPart) grid.pitch = grid.width;
  return grid;
}
template <bool IsPart>
CUOP_FN StencilResult known(const StencilResult& result, const StencilGrid& grid) {
  if constexpr (IsPart) return result;
  return {result.first, grid.width, 0, grid.width, 0};
}

/// A warp's strip of a tile, and the rows around it.
template <class T, int Radius>
struct SweptStrip {
  static constexpr int kEach = sweep_cells_each(sizeof(T)), kWarps = kSweepThreads / 32;
  using Edge = Pack<T, kEach>;
  /// What strips show each other: their first and last rows.
  using Edges = Edge[kWarps][2][Radius][32];

  SweptRow<T, kEach, Radius> rows[kSweepStrip + 2 * Radius];

  CUOP_FN T& cell(int row, int column) { return rows[Radius + row].cells[Radius + column]; }

  /// From the row and column of the grid where the thread's cells begin.
  CUOP_FN void load(const StencilGrid& grid, int64_t top, int64_t left) {
    const bool is_inside = top >= -grid.halo && top + kSweepStrip <= grid.height + grid.halo &&
                           left >= 0 && left + kEach <= grid.width;
    const bool is_aligned =
        grid.pitch % kEach == 0 && reinterpret_cast<uint64_t>(grid.first) % 16 == 0;
    if (is_inside && is_aligned) {
      const T* from = static_cast<const T*>(grid.first) + top * grid.pitch + left;
#pragma unroll
      for (int j = 0; j < kSweepStrip; ++j, from += grid.pitch) {
        T own[kEach];
        load_pack(own, from);
#pragma unroll
        for (int k = 0; k < kEach; ++k) cell(j, k) = own[k];
      }
      return;
    }
#pragma unroll
    for (int j = 0; j < kSweepStrip; ++j) {
#pragma unroll
      for (int k = 0; k < kEach; ++k) cell(j, k) = jit::cell<T>(grid, top + j, left + k);
    }
  }

  /// The rows above and below. The whole block comes here; `edges` are two in turns, so that nobody
  /// writes to those that others still read.
  CUOP_FN void meet(Edges& edges) {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int r = 0; r < Radius; ++r) {
#pragma unroll
      for (int k = 0; k < kEach; ++k) {
        edges[warp][0][r][lane].values[k] = cell(r, k);
        edges[warp][1][r][lane].values[k] = cell(kSweepStrip - Radius + r, k);
      }
    }
    __syncthreads();
    const int above = warp > 0 ? warp - 1 : 0, below = warp + 1 < kWarps ? warp + 1 : warp;
#pragma unroll
    for (int r = 0; r < Radius; ++r) {
      const Edge before = edges[above][1][r][lane], behind = edges[below][0][r][lane];
#pragma unroll
      for (int k = 0; k < kEach; ++k) {
        cell(r - Radius, k) = before.values[k];
        cell(kSweepStrip + r, k) = behind.values[k];
      }
    }
  }
};

/// The cells of a thread's strip, and which of them are its tile's result.
struct SweptPlace {
  int64_t top, left;  ///< of the grid, where the strip begins
  int64_t height;     ///< of the result
  int64_t tile_column;
  int first_row, end_row;  ///< of the strip in the tile's result
  bool is_column;          ///< the thread's columns are in the tile's result

  CUOP_FN bool is_row(int row) const {
    return row >= first_row && row < end_row && top + row < height;
  }
};

/// Sweeps the tiles of a grid. `update` says what a sweep does: begin(place) for each tile;
/// row(sweep, rows, j, next) gives the next values of row j of a strip from the rows around it, of
/// which the first is `Radius` above; done(place, sweep) comes after a sweep's rows. `edges` are
/// two in shared memory. IsPart: rows lie apart, or some columns alone are results.
template <bool IsPart, class T, int Radius, class Update>
CUOP_FN void sweep_tiles(const SweptGrid& a, typename SweptStrip<T, Radius>::Edges* edges,
                         Update& update) {
  using Strip = SweptStrip<T, Radius>;
  constexpr int kEach = Strip::kEach, kColumns = sweep_columns(sizeof(T));
  const StencilGrid grid = known<IsPart>(a.grid);
  const StencilResult out = known<IsPart>(a.out, a.grid);
  const int sweeps = static_cast<int>(a.sweeps), edge = Radius * sweeps;
  const int margin = sweep_margin(edge, sizeof(T));
  const int rows = kSweepRows - 2 * edge, columns = kColumns - 2 * margin;  // of the result
  const int64_t across = tiles_in_a_row(out, columns);
  const int64_t tiles = across * divide_up(grid.height, rows);
  const int row = static_cast<int>(threadIdx.x) / 32 * kSweepStrip;
  const int column = static_cast<int>(threadIdx.x) % 32 * kEach;
  const bool is_aligned = out.pitch % kEach == 0 && reinterpret_cast<uint64_t>(out.first) % 16 == 0;
  SweptPlace place;
  place.height = grid.height;
  place.first_row = edge - row;
  place.end_row = edge + rows - row;
  place.is_column = column >= margin && column < margin + columns;
  int turn = 0;
#pragma unroll 1
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t above = quotient(tile, across);
    place.tile_column = tile - above * across;
    const int64_t top = above * rows - edge + row;
    const int64_t left = out.first_tile + place.tile_column * columns - margin + column;
    place.top = top;
    place.left = left;
    const bool is_inner = top >= a.first && top + kSweepStrip <= a.last &&
                          (grid.is_periodic != 0 || (left >= 0 && left + kEach <= grid.width));
    Strip strip;
    strip.load(grid, top, left);
    update.begin(place);
#pragma unroll 1
    for (int sweep = 0; sweep < sweeps; ++sweep, turn = 1 - turn) {
      strip.meet(edges[turn]);
      T next[kSweepStrip][kEach];
#pragma unroll
      for (int j = 0; j < 2 * Radius; ++j) strip.rows[j].fetch_sides();
#pragma unroll
      for (int j = 0; j < kSweepStrip; ++j) {
        strip.rows[j + 2 * Radius].fetch_sides();
        update.row(sweep, strip.rows + j, j, next[j]);
      }
      update.done(place, sweep);
#pragma unroll
      for (int j = 0; j < kSweepStrip; ++j) {
#pragma unroll
        for (int k = 0; k < kEach; ++k) strip.cell(j, k) = next[j][k];
      }
      if (is_inner) continue;
#pragma unroll
      for (int j = 0; j < kSweepStrip; ++j) {  // beyond its ends the grid stays zero
        const bool is_row = top + j >= a.first && top + j < a.last;
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
          const int64_t at = left + k;
          const bool is_there = grid.is_periodic != 0 || (at >= 0 && at < grid.width);
          if (!is_row || !is_there) strip.cell(j, k) = T(0);
        }
      }
    }
    if (!place.is_column) continue;
    T* to = static_cast<T*>(out.first) + top * out.pitch + left;
    const bool is_begun = !IsPart || left >= out.begin;
    const bool is_whole = is_aligned && is_begun && left + kEach <= out.end;
#pragma unroll
    for (int j = 0; j < kSweepStrip; ++j, to += out.pitch) {
      if (!place.is_row(j)) continue;
      T own[kEach];
#pragma unroll
      for (int k = 0; k < kEach; ++k) own[k] = strip.cell(j, k);
      if (is_whole) {
        store_pack(to, own);
      } else {
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
          const bool is_made = (!IsPart || left + k >= out.begin) && left + k < out.end;
          if (is_made) to[k] = own[k];
        }
      }
    }
  }
}

/// Weighted sums.
template <class T, int Radius, class... Taps>
struct StencilUpdate {
  const SweepArguments& a;

  CUOP_FN void begin(const SweptPlace&) {}
  template <class Rows, int Each>
  CUOP_FN void row(int, const Rows* rows, int, T (&next)[Each]) {
#pragma unroll
    for (int k = 0; k < Each; ++k) next[k] = SweptCell<T, Radius, Taps...>::at(rows, k, a);
  }
  CUOP_FN void done(const SweptPlace&, int) {}
};

template <class T, bool IsPart, int Radius, class... Taps>
CUOP_FN void stencil_sweeps(const SweepArguments& a) {
  __shared__ typename SweptStrip<T, Radius>::Edges edges[2];
  static_assert(sizeof(edges) == sweep_edge_bytes(Radius));
  StencilUpdate<T, Radius, Taps...> update{a};
  sweep_tiles<IsPart, T, Radius>(a.swept, edges, update);
}

/// Jacobi's: the right-hand side waits in shared memory, each thread's cells at its own place.
/// HasNorms: some of the sweeps leave norms, whose float64 sums cost as much as the rest.
template <class T, bool IsPart, bool HasNorms>
struct JacobiUpdate {
  static constexpr int kEach = sweep_cells_each(sizeof(T));
  using Own = Pack<T, kEach>;

  const JacobiSweepArguments& a;
  Own* rhs;
  int64_t across;             ///< tiles in a row
  double norms[kSweepStrip];  ///< of the thread's cells in each row
  unsigned counted;           ///< a bit for each of its columns whose updates are in the norms

  CUOP_FN void begin(const SweptPlace& place) {
    counted = 0;
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const int64_t at = place.left + k;
      const bool is_counted = place.is_column && at >= a.counted.first && at < a.counted.last;
      counted |= is_counted ? 1u << k : 0u;
    }
    SweptStrip<T, 1> strip;
    strip.load(known<IsPart>(a.rhs), place.top, place.left);
#pragma unroll
    for (int j = 0; j < kSweepStrip; ++j) {
#pragma unroll
      for (int k = 0; k < kEach; ++k) own(j).values[k] = strip.cell(j, k);
    }
  }
  template <class Rows>
  CUOP_FN void row(int sweep, const Rows* rows, int j, T (&next)[kEach]) {
    const Own f = own(j);
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const T vertical = rows[0].cells[k + 1] + rows[2].cells[k + 1];
      const T horizontal = rows[1].cells[k] + rows[1].cells[k + 2];
      next[k] = ((vertical + horizontal) - static_cast<T>(a.factor) * f.values[k]) * T(0.25);
    }
    if (!is_measured(sweep)) return;
    norms[j] = 0;
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const double update = static_cast<double>(next[k] - rows[1].cells[k + 1]);
      if ((counted >> k & 1u) != 0) norms[j] += update * update;
    }
  }
  /// Adds up the squares of a sweep's update over the tile's part of each row.
  CUOP_FN void done(const SweptPlace& place, int sweep) {
    if (!is_measured(sweep)) return;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    int row = 0;
#pragma unroll
    for (int half = kSweepStrip / 2, apart = 16; half > 0; half /= 2, apart /= 2) {
      const bool is_upper =
          (lane & apart) != 0;  // these lanes go on with the upper half of the rows
      row += is_upper ? half : 0;
#pragma unroll
      for (int j = 0; j < half; ++j) {
        const double given = is_upper ? norms[j] : norms[j + half];
        const double kept = is_upper ? norms[j + half] : norms[j];
        norms[j] = kept + __shfl_xor_sync(0xffffffffu, given, apart);
      }
    }
    constexpr int kShared = 32 / kSweepStrip;  // lanes with the same row
#pragma unroll
    for (int apart = kShared / 2; apart > 0; apart /= 2) {
      norms[0] += __shfl_xor_sync(0xffffffffu, norms[0], apart);
    }
    if (lane % kShared == 0 && place.is_row(row)) {
      const int64_t measured = sweep - a.first_measured;
      a.norms[(measured * place.height + place.top + row) * across + place.tile_column] = norms[0];
    }
  }

 private:
  CUOP_FN bool is_measured(int sweep) const { return HasNorms && sweep >= a.first_measured; }
  CUOP_FN Own& own(int row) { return rhs[row * kSweepThreads + static_cast<int>(threadIdx.x)]; }
};

template <class T, bool IsPart, bool HasNorms>
CUOP_FN void jacobi_sweeps(const JacobiSweepArguments& a) {
  using Update = JacobiUpdate<T, IsPart, HasNorms>;
  const int margin = sweep_margin(static_cast<int>(a.swept.sweeps), sizeof(T));
  const int columns = sweep_columns(sizeof(T)) - 2 * margin;
  unsigned char* const room = block_room<sweep_edge_bytes(1) + kSweepRhsBytes>();
  Update update{a, reinterpret_cast<typename Update::Own*>(room + sweep_edge_bytes(1)),
                tiles_in_a_row(known<IsPart>(a.swept.out, a.swept.grid), columns)};
  sweep_tiles<IsPart, T, 1>(a.swept, reinterpret_cast<typename SweptStrip<T, 1>::Edges*>(room),
                            update);
}

}  // namespace cuop::jit
