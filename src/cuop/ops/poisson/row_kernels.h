// Internal: the device kernels behind row_sweeps.h, and the loops of the CPU's. Products and sums
// are rounded one by one in a fixed order, so that devices and instruction sets agree bit by bit.
#pragma once

#include <cstdint>
#include <vector>

#include "cuop/core/five_point.h"
#include "cuop/core/tensor.h"
#include "cuop/jit/cuda/kernel_fwd.h"
#include "cuop/ops/poisson/band_table.h"
#include "cuop/ops/poisson/five_point_arguments.cuh"

namespace cuop::kernels {

/// An operator on given rows as the kernels of both devices take it.
inline jit::GridRows grid_rows(const FivePoint& op, int64_t first) {
  return {op.height,
          op.width,
          first,
          op.is_periodic() ? 1 : 0,
          op.ends == AxisEnds::kZeroFlux ? 1 : 0,
          static_cast<int64_t>(colours_of(op).size()),
          op.down,
          op.across};
}

void relax_cpu(const FivePoint& op, const Tensor& u, const Tensor& b, int64_t first,
               const std::vector<int>& colours, double omega);
void relax_cuda(const FivePoint& op, const Tensor& u, const Tensor& b, int64_t first,
                const std::vector<int>& colours, double omega);
/// `b` and `out` may be undefined.
void five_point_residual_cpu(const FivePoint& op, const Tensor& padded, const Tensor& b,
                             int64_t first, const Tensor& out, const Tensor& squares);
void five_point_residual_cuda(const FivePoint& op, const Tensor& padded, const Tensor& b,
                              int64_t first, const Tensor& out, const Tensor& squares);
void row_dots_cpu(const Tensor& x, const Tensor& y, const Tensor& dots);
void row_dots_cuda(const Tensor& x, const Tensor& y, const Tensor& dots);
void resample_cpu(const Tensor& in, const BandTable& down, const BandTable& across,
                  const Tensor& out, bool is_added);
void resample_cuda(const Tensor& in, const BandTable& down, const BandTable& across,
                   const Tensor& out, bool is_added);

/// The three rows around the cells of a loop, and the operator's numbers there.
template <class T>
struct RowCells {
  const T* north;
  const T* south;
  const T* b;  ///< null: as if it were zero, and the sign turned
  T down, across;
  T diagonal;  ///< of A
};

/// Over columns that have neighbours on both sides.
template <class T>
struct FivePointLoops {
  /// Cells with an even column are updated, counted from `center`.
  void (*relax)(const RowCells<T>& cells, T inverse, T omega, int64_t count, T* center);
  /// The sum of squares; `out` may be null.
  double (*residual)(const RowCells<T>& cells, const T* center, int64_t count, T* out);
  double (*dot)(const T* x, const T* y, int64_t count);
  /// out[j] = sum_k weights[k] * rows[k][j], added in the order of k.
  void (*combine)(const T* const* rows, const T* weights, int64_t taps, int64_t count, T* out);
  /// out[j] = sum_k weights[j * taps + k] * in[first[j] + k], added in the order of k; out + that
  /// where `is_added`.
  void (*gather)(const T* in, const int64_t* first, const T* weights, int64_t taps, int64_t count,
                 bool is_added, T* out);
};
template <class Level, class T>
const FivePointLoops<T>& five_point_loops();

enum class RowKernel : uint8_t { kRelax, kResidual, kDots, kResample };
jit::TextKernel row_kernel(RowKernel kernel, DType dtype);

}  // namespace cuop::kernels
