// Fourier transforms over ranks.
#pragma once

#include "cuop/dist/exec/operation.h"
#include "cuop/ops/fft/fft.h"

namespace cuop::dist {

struct FftOptions {
  FftNorm norm = FftNorm::kBackward;
  bool is_inverse = false;
};

/// Two-dimensional transform of one [rows, columns] grid by two passes and an all-to-all between
/// them. The result lies in whole columns unless `call.output` says otherwise. Strategy "pencil".
DistTensor fft2d_pencil(const DistTensor& x, const FftOptions& options = {},
                        const CallOptions& call = {});
/// With grid and result on rank 0; also strategy "root".
Tensor fft2d_pencil_from_root(const CommunicatorPtr& comm, const Tensor& x,
                              const FftOptions& options = {}, const CallOptions& call = {});

enum class FftKind : uint8_t { kFft, kIfft, kRfft, kIrfft };

/// One-dimensional transforms along `dim`, cut or padded to `n`, the other dimensions split over
/// the ranks. Strategies: "keep" (as x lies, when `dim` is whole there), "batch" (blocks of the
/// longest other dimension), "one_rank" when there is no other.
struct FftBatch {
  FftKind kind = FftKind::kFft;
  FftSize n = {};
  int64_t dim = -1;
  FftNorm norm = FftNorm::kBackward;
};
DistTensor fft(const DistTensor& x, const FftBatch& batch = {}, const CallOptions& call = {});
Tensor fft_from_root(const CommunicatorPtr& comm, const Tensor& x, const FftBatch& batch = {},
                     const CallOptions& call = {});

/// Two-dimensional transforms along the two `dims` of at least 3, split over another one.
struct Fft2dBatch {
  FftDims s = {};
  Dims dims = {-2, -1};
  FftOptions options = {};
};
DistTensor fft2d(const DistTensor& x, const Fft2dBatch& batch = {}, const CallOptions& call = {});
Tensor fft2d_from_root(const CommunicatorPtr& comm, const Tensor& x, const Fft2dBatch& batch = {},
                       const CallOptions& call = {});

}  // namespace cuop::dist
