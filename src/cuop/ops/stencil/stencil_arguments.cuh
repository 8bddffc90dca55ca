// What the stencil kernels are given; host and device read the same structs.
#pragma once

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
  int64_t is_periodic;  ///< 0 or 1
};

/// A weight and where it applies.
struct alignas(16) StencilTap {
  uint64_t weight[2];  ///< as an element of the grid lies in memory
  int32_t row, column;
};

struct StencilArguments {
  StencilGrid grid;
  void* out;
  int64_t row_radius;  ///< how far the taps reach up and down
  int64_t taps;
  StencilTap tap[kStencilTaps];
};

/// Several sweeps in one pass over memory: a block's tile and, around it, what all sweeps read.
inline constexpr int kSweepThreads = 512;
inline constexpr int kSweepColumns = 128;
inline constexpr int kSweepTaps = 25;   ///< the most weights
inline constexpr int kSweepRadius = 2;  ///< of taps, in rows and columns
inline constexpr int kSweepReach = 4;   ///< of all sweeps together, beyond a tile

/// Cells of a thread, one below the other.
CUOP_FN constexpr int sweep_rows_each(int64_t itemsize) { return itemsize <= 4 ? 16 : 8; }
/// Rows that the first sweep computes; each sweep after it leaves `radius` at every edge to others.
CUOP_FN constexpr int sweep_rows(int64_t itemsize) {
  return kSweepThreads / kSweepColumns * sweep_rows_each(itemsize);
}
/// Cells of a block in shared memory.
CUOP_FN constexpr int sweep_cells(int64_t itemsize, int radius) {
  return (sweep_rows(itemsize) + 2 * radius) * (kSweepColumns + 2 * radius);
}

struct SweepArguments {
  StencilGrid grid;
  void* out;            ///< [height, width]
  int64_t sweeps;       ///< at most kSweepReach / radius
  int64_t first, last;  ///< rows, relative to the result's, outside of which the grid has ended
  uint64_t weight[kSweepTaps][2];
};

struct JacobiArguments {
  StencilGrid grid;
  const void* rhs;
  void* out;
  double* norms;  ///< one a row
  double factor;  ///< dx^2, or for residuals 1 / dx^2
};

}  // namespace cuop::jit
