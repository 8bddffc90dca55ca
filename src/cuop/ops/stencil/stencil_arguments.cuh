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

struct JacobiArguments {
  StencilGrid grid;
  const void* rhs;
  void* out;
  double* norms;  ///< one a row
  double factor;  ///< dx^2, or for residuals 1 / dx^2
};

}  // namespace cuop::jit
