// Internal: the BLAS operations after all checks. Tensors of one call share dtype and device.
#pragma once

#include <complex>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include "cuop/ops/linalg_options.h"
#include "cuop/ops/matmul/matmul_kernels.h"

namespace cuop::kernels {

/// out <- alpha * x + y, or alpha * x when y is null; equal shapes, any strides, out may be x or y.
void axpy_cpu(const Scalar& alpha, const Tensor& x, const Tensor* y, const Tensor& out);
DotValue dot_cpu(const Tensor& x, const Tensor& y, bool conjugate);
/// Expressions of the fused kernels, which run wherever the tensors are; dot waits for the stream.
void axpy_cuda(const Scalar& alpha, const Tensor& x, const Tensor* y, const Tensor& out);
DotValue dot_cuda(const Tensor& x, const Tensor& y, bool conjugate);

// Nothing is empty but perhaps the inner axis of gemv; the output overlaps no input, but x may be b
// in trsm.
void gemv_cpu(const Tensor& a, const Tensor& x, const GemvOptions& options, const Tensor& y);
/// gemv by plain loops, in tiles when the caller asks for a tile size (backend/kernel.h).
void gemv_loops_cpu(const Tensor& a, const Tensor& x, const GemvOptions& options, const Tensor& y);
/// y as the product that matmul would compute, of matrices without batch.
Product gemv_product(const Tensor& a, const Tensor& x, const GemvOptions& options, const Tensor& y);
/// gemv and symm of the dtypes that BLAS lacks, as products of matmul.
void gemv_product_cpu(const Tensor& a, const Tensor& x, const GemvOptions& options,
                      const Tensor& y);
void symm_product_cpu(const Tensor& a, const Tensor& b, const SymmOptions& options,
                      const Tensor& c);
void symm_cpu(const Tensor& a, const Tensor& b, const SymmOptions& options, const Tensor& c);
void trsm_cpu(const Tensor& a, const Tensor& b, const TrsmOptions& options, const Tensor& x);
void gemv_cuda(const Tensor& a, const Tensor& x, const GemvOptions& options, const Tensor& y);
void symm_cuda(const Tensor& a, const Tensor& b, const SymmOptions& options, const Tensor& c);
void trsm_cuda(const Tensor& a, const Tensor& b, const TrsmOptions& options, const Tensor& x);

template <class T>
struct Level1 {
  /// Integers are unsigned here: sums and products modulo 2^n are those of the signed ones.
  using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, std::complex<double>>;

  void (*scal)(int64_t count, T alpha, const T* x, T* out);
  void (*axpy)(int64_t count, T alpha, const T* x, const T* y, T* out);
  /// Sum of x[i] * y[i], or of conj(x[i]) * y[i], accumulated in double; of integers, the bits
  /// that T has are right.
  Sum (*dot)(int64_t count, const T* x, const T* y, bool conjugate);
};

using Level1Kernels =
    std::tuple<Level1<uint8_t>, Level1<uint16_t>, Level1<uint32_t>, Level1<uint64_t>, Level1<float>,
               Level1<double>, Level1<std::complex<float>>, Level1<std::complex<double>>>;
template <class Level>
const Level1Kernels& level1_kernels();

}  // namespace cuop::kernels
