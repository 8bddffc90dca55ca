// What the stencil kernels are given; host and device read the same structs.
#pragma once

#include "cuop/core/divide_up.h"
#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

inline constexpr int kStencilThreads = 256;
inline constexpr int kStencilColumns = 64;  ///< of a block's tile
inline constexpr int kStencilReach = 4;     ///< of taps within a tile, in rows and columns

/// Cells of a thread, one below the other: as many as shared memory has room for.
CUOP_FN constexpr int stencil_rows_each(int64_t itemsize) { return itemsize <= 8 ? 16 : 4; }
/// Rows of a tile.
CUOP_FN constexpr int stencil_rows(int64_t itemsize) {
  return kStencilThreads / kStencilColumns * stencil_rows_each(itemsize);
}

/// As many as fit into a kernel's arguments beside the rest.
inline constexpr int kStencilTaps = 64;

/// A grid [height, width] that is read, with `halo` rows of neighbours before and behind it.
struct StencilGrid {
  const void* first;  ///< the grid's first element, behind the halo
  int64_t height, width, halo;
  int64_t pitch;        ///< elements from a row to the next
  int64_t is_periodic;  ///< 0 or 1
};

/// Where results go: columns [begin, end) of the grid's, all its rows.
struct StencilResult {
  void* first;  ///< where the grid's first cell would be
  int64_t pitch;
  int64_t begin, end;
  int64_t first_tile;  ///< the column where tiles begin: `begin` or some before it, so that no pack
                       ///< of 16 bytes is cut
};

/// Tiles of `columns` columns that cover a row of results.
CUOP_FN constexpr int64_t tiles_in_a_row(const StencilResult& result, int64_t columns) {
  return divide_up(result.end - result.first_tile, columns);
}

/// A weight and where it applies.
struct alignas(16) StencilTap {
  uint64_t weight[2];  ///< as an element of the grid lies in memory
  int32_t row, column;
};

struct StencilArguments {
  StencilGrid grid;
  StencilResult out;
  int64_t row_radius;  ///< how far the taps reach up and down
  int64_t taps;
  StencilTap tap[kStencilTaps];
};

/// Several sweeps in one pass over memory: a warp has a strip of the block's tile in registers.
inline constexpr int kSweepThreads = 256;
inline constexpr int kSweepStrip = 8;   ///< rows of a strip
inline constexpr int kSweepTaps = 25;   ///< the most weights
inline constexpr int kSweepRadius = 2;  ///< of taps, in rows and columns
/// How far all sweeps of a pass reach together. Tiles overlap by as much: few weights are cheap to
/// compute twice, many are not.
CUOP_FN constexpr int sweep_reach(int64_t taps) { return taps <= 5 ? 8 : 4; }

/// Neighbouring cells of a thread's row: one access.
CUOP_FN constexpr int sweep_cells_each(int64_t itemsize) { return static_cast<int>(16 / itemsize); }
/// Of a tile. Each sweep leaves `radius` cells at every edge without a result.
inline constexpr int kSweepRows = kSweepThreads / 32 * kSweepStrip;
CUOP_FN constexpr int sweep_columns(int64_t itemsize) { return 32 * sweep_cells_each(itemsize); }
/// Of a tile's columns on each side those that are not its result, so that accesses stay aligned.
CUOP_FN constexpr int sweep_margin(int edge, int64_t itemsize) {
  return round_up(edge, sweep_cells_each(itemsize));
}

/// What several sweeps in one pass read and write.
struct SweptGrid {
  StencilGrid grid;
  StencilResult out;
  int64_t sweeps;
  int64_t first, last;  ///< rows, relative to the result's, outside of which the grid has ended
};

/// Bytes by which the strips of a block show each other their first and last rows, in two turns.
CUOP_FN constexpr int sweep_edge_bytes(int radius) {
  return 2 * (kSweepThreads / 32) * 2 * radius * 32 * 16;
}
/// Bytes of a block's tile of the right-hand side.
inline constexpr int kSweepRhsBytes = kSweepStrip * kSweepThreads * 16;

struct SweepArguments {
  SweptGrid swept;
  uint64_t weight[kSweepTaps][2];
};

/// Whose updates count in norms.
struct NormColumns {
  int64_t first, last;
};

struct JacobiArguments {
  StencilGrid grid;
  StencilGrid rhs;  ///< of the grid's height and width
  StencilResult out;
  double* norms;  ///< one a row; null where they are not wanted
  NormColumns counted;
  double factor;  ///< dx^2, or for residuals 1 / dx^2
};

struct JacobiSweepArguments {
  SweptGrid swept;
  StencilGrid rhs;  ///< of the grid's height, perhaps with fewer rows before and behind it
  double* norms;  ///< [sweeps that are measured, height, tiles in a row], of the cells of each tile
  int64_t first_measured;  ///< of the sweeps; the later ones are as well
  NormColumns counted;
  double factor;  ///< dx^2
};

}  // namespace cuop::jit
