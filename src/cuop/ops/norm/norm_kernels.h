// Internal: the device kernels behind norm.h, and the loops of the CPU's.
#pragma once

#include <cstdint>

#include "cuop/core/tensor.h"
#include "cuop/jit/cuda/kernel_fwd.h"

namespace cuop::kernels {

/// How rows are normalised. x and out are contiguous, gamma and beta contiguous in the compute
/// dtype (beta may be undefined).
struct RowNorm {
  int64_t rows = 0;
  int64_t channels = 1;    ///< gamma has one entry for each of `channels`...
  int64_t inner = 1;       ///< ...groups of `inner` neighbours; a row has channels * inner elements
  bool is_centred = true;  ///< false: divide by the root mean square, keep the mean
  double eps = 0.0;
};
void row_norm_cpu(const Tensor& x, const RowNorm& norm, const Tensor& gamma, const Tensor& beta,
                  const Tensor& out);
void row_norm_cuda(const Tensor& x, const RowNorm& norm, const Tensor& gamma, const Tensor& beta,
                   const Tensor& out);

/// out = (x - mean) * scale + shift for x [N, C, inner]; mean, scale and shift are float64 [C].
void channel_affine_cpu(const Tensor& x, int64_t inner, const Tensor& mean, const Tensor& scale,
                        const Tensor& shift, const Tensor& out);
void channel_affine_cuda(const Tensor& x, int64_t inner, const Tensor& mean, const Tensor& scale,
                         const Tensor& shift, const Tensor& out);

/// Biased mean and variance of every channel of x [N, C, inner] as float64 [C].
void channel_moments_cpu(const Tensor& x, const Tensor& mean, const Tensor& variance);
void channel_moments_cuda(const Tensor& x, const Tensor& mean, const Tensor& variance);

/// y may be x. Differences are taken in double: the mean may be far larger than the spread.
template <class T>
struct NormLoops {
  /// y[i] = (x[i] - mean) * scale * gamma[i] + beta[i]; beta may be null
  void (*elements)(const T* x, T* y, int64_t n, double mean, double scale, const T* gamma,
                   const T* beta);
  /// y[i] = (x[i] - mean) * scale + shift
  void (*constant)(const T* x, T* y, int64_t n, double mean, double scale, double shift);
  /// y[i] = (x[i] - mean[i]) * scale[i] + shift[i]
  void (*columns)(const T* x, T* y, int64_t n, const double* mean, const double* scale,
                  const double* shift);
};

template <class Level, class T>
const NormLoops<T>& norm_loops();

/// How a position in a row becomes one of gamma: it is the same, or the position divided by the
/// number of neighbours that share an entry, in 32 or 64 bits.
enum class NormGroup : uint8_t { kNone, kNarrow, kWide };

/// For x and y at these addresses, gamma and beta at those of `parameters`; `inner` neighbours of a
/// row share an entry of these.
jit::RowPlan norm_rows_plan(int64_t length, int64_t inner, DType dtype,
                            std::initializer_list<const void*> addresses,
                            std::initializer_list<const void*> parameters = {});
jit::TextKernel norm_rows_kernel(DType dtype, const jit::RowPlan& plan, bool is_centred,
                                 NormGroup group);

}  // namespace cuop::kernels
