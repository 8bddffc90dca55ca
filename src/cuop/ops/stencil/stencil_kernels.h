// Internal: the device kernels behind stencil.h, and the loops of the CPU's. Sums are plain
// products and additions in a fixed order, so edges, interiors, row blocks and instruction sets
// agree bit by bit.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "cuop/core/tensor.h"
#include "cuop/jit/cuda/kernel_fwd.h"
#include "cuop/ops/stencil/boundary.h"

namespace cuop::kernels {

/// A weight of a stencil and where it applies: out(i, j) += weight * in(i + row, j + column).
struct Tap {
  int64_t row = 0;
  int64_t column = 0;
  std::complex<double> weight = 0.0;
};
struct TapList {
  int64_t row_radius = 0;
  int64_t column_radius = 0;
  std::vector<Tap> taps;  ///< only weights that are not zero, in row-major order
};

/// `sweeps` applications to the contiguous `grid` [h, w].
void stencil_cpu(const Tensor& grid, const TapList& taps, Boundary boundary, int64_t sweeps,
                 const Tensor& out);
void stencil_cuda(const Tensor& grid, const TapList& taps, Boundary boundary, int64_t sweeps,
                  const Tensor& out);
/// Of rows with their halos: `padded` is [h + 2 sweeps row_radius, w]. The CPU makes one sweep of
/// contiguous tensors, and all columns. GPUs read and write rows of any pitch.
void stencil_rows_cpu(const Tensor& padded, const TapList& taps, Boundary boundary,
                      const RowSweeps& rows, const Tensor& out);
void stencil_rows_cuda(const Tensor& padded, const TapList& taps, Boundary boundary,
                       const RowSweeps& rows, const Tensor& out);

/// `sweeps` Jacobi sweeps over `u` [h, w]; of the last `measured`, on the CPU of all of them,
/// row_norms[i * h + row] becomes the sum of squares of that row's update in the i-th. The norms
/// lie in the host's memory: where a device computes them, these functions wait for it.
void jacobi_cpu(const Tensor& u, const Tensor& rhs, double dx, Boundary boundary, int64_t sweeps,
                const Tensor& out, double* row_norms, int64_t measured);
/// Of rows with their halos, as above, the norms lie where the grid does: float64 [h], of several
/// sweeps, which the CPU does not make, [n, h] of the last n. The right-hand side has `sweeps` - 1
/// rows on each side more than the result.
void jacobi_rows_cpu(const Tensor& padded, const Tensor& rhs, double dx, Boundary boundary,
                     const RowSweeps& rows, const Tensor& out, const Tensor& row_norms);
void jacobi_cuda(const Tensor& u, const Tensor& rhs, double dx, Boundary boundary, int64_t sweeps,
                 const Tensor& out, double* row_norms, int64_t measured);
void jacobi_rows_cuda(const Tensor& padded, const Tensor& rhs, double dx, Boundary boundary,
                      const RowSweeps& rows, const Tensor& out, const Tensor& row_norms);
/// Sums of squares of rhs - (N + S + E + W - 4 u) / dx^2, row by row.
void residual_rows_cpu(const Tensor& padded, const Tensor& rhs, double dx, Boundary boundary,
                       const Tensor& row_norms);
void residual_rows_cuda(const Tensor& padded, const Tensor& rhs, double dx, Boundary boundary,
                        const Tensor& row_norms);
/// How many sweeps over rows of this width are best done in one pass over memory.
int64_t sweeps_per_pass(int64_t width, int64_t row_radius, int64_t itemsize);
/// How many a GPU does in one pass; 1 for taps for which it has no such kernel.
int64_t sweeps_per_pass_cuda(const TapList& taps, int64_t itemsize);
int64_t jacobi_sweeps_per_pass_cuda();

/// Over the columns of one row: out[j] = sum_n weights[n] * inputs[n][j], added in the order of n.
template <class T>
using WeightedSum = void (*)(const T* const* inputs, const T* weights, int64_t taps, int64_t count,
                             T* out);
template <class Level, class T>
WeightedSum<T> weighted_sum();

/// The loops of Jacobi's method over the columns of one row.
template <class T>
struct JacobiLoops {
  /// out[j] = (north[j] + south[j] + (center[j-1] + center[j+1]) - dx2 * rhs[j]) / 4; returns the
  /// sum of squares of out - center.
  double (*jacobi)(const T* north, const T* south, const T* center, const T* rhs, T dx2,
                   int64_t count, T* out);
  /// The sum of squares of rhs[j] - (N + S + W + E - 4 center[j]) * scale.
  double (*residual)(const T* north, const T* south, const T* center, const T* rhs, double scale,
                     int64_t count);
};
template <class Level, class T>
const JacobiLoops<T>& jacobi_loops();

/// `is_near`: no tap reaches beyond kStencilReach cells; `is_first`: nothing is in the results yet.
jit::TextKernel stencil_kernel(DType dtype, bool is_near, bool is_first);
/// Several sweeps in one pass, where `sweeps_per_pass_cuda` is more than 1. `is_part`: rows lie
/// apart, or some columns alone are made.
jit::TextKernel sweep_kernel(DType dtype, const TapList& taps, bool is_part);
jit::TextKernel jacobi_kernel(DType dtype, bool is_residual);
/// `has_norms`: some of its sweeps leave norms.
jit::TextKernel jacobi_sweep_kernel(DType dtype, bool is_part, bool has_norms);

/// Whether the grid is complex and all weights are real.
bool is_by_parts(const Tensor& grid, const TapList& list);
Tensor by_parts(const Tensor& grid);
TapList by_parts(TapList list);

}  // namespace cuop::kernels
