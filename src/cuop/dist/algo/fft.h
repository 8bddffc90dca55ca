// Fourier transforms over ranks.
#pragma once

#include <string>
#include <vector>

#include "cuop/dist/exec/operation.h"
#include "cuop/dist/plan/fft_plan.h"
#include "cuop/ops/fft/fft.h"

namespace cuop::dist {

/// What is transformed, with the meanings and defaults of ops/fft: `s` holds lengths (-1: as it is)
/// of the `axes`; kRfft takes real input and makes the half of the last axis that is not the
/// conjugate of the rest, kIrfft the way back.
struct FftCall {
  FftKind kind = FftKind::kFft;
  FftDims s = {};
  FftDims axes = {};
  FftNorm norm = FftNorm::kBackward;
};
/// The same of a tensor, with all lengths and axes; the errors of a call that does not fit.
FftProblem fft_problem(const std::string& who, const FftCall& call, const Placement& x);
/// Some of the problem's axes, whole in this part of its tensor, into a part of the result.
void transform_axes(const FftProblem& problem, FftNorm norm, const Tensor& part,
                    const std::vector<int>& axes, const Tensor& into);

/// Any axes of a tensor of any layout; strategies as plan/fft_plan.h says. The result lies where
/// the last pass makes it unless `options.output` says otherwise, which saves an all-to-all there
/// and another on the way back.
DistTensor fftn(const DistTensor& x, const FftCall& call = {}, const CallOptions& options = {});
/// With x and the result on rank 0.
Tensor fftn_from_root(const CommunicatorPtr& comm, const Tensor& x, const FftCall& call = {},
                      const CallOptions& options = {});

struct FftOptions {
  FftNorm norm = FftNorm::kBackward;
  bool is_inverse = false;
};

/// Two-dimensional transform of one [rows, columns] grid, usually by two passes and an all-to-all
/// between them.
DistTensor fft2d_pencil(const DistTensor& x, const FftOptions& options = {},
                        const CallOptions& call = {});
Tensor fft2d_pencil_from_root(const CommunicatorPtr& comm, const Tensor& x,
                              const FftOptions& options = {}, const CallOptions& call = {});

/// One-dimensional transforms along `dim`, cut or padded to `n`; of one long line, or of fewer than
/// there are ranks, also over all ranks (strategy "four_step", plan/four_step_plan.h, or "chirp",
/// plan/chirp_plan.h).
struct FftBatch {
  FftKind kind = FftKind::kFft;
  FftSize n = {};
  int64_t dim = -1;
  FftNorm norm = FftNorm::kBackward;
};
DistTensor fft(const DistTensor& x, const FftBatch& batch = {}, const CallOptions& call = {});
Tensor fft_from_root(const CommunicatorPtr& comm, const Tensor& x, const FftBatch& batch = {},
                     const CallOptions& call = {});

/// Two-dimensional transforms along the two `dims`.
struct Fft2dBatch {
  FftDims s = {};
  Dims dims = {-2, -1};
  FftOptions options = {};
};
DistTensor fft2d(const DistTensor& x, const Fft2dBatch& batch = {}, const CallOptions& call = {});
Tensor fft2d_from_root(const CommunicatorPtr& comm, const Tensor& x, const Fft2dBatch& batch = {},
                       const CallOptions& call = {});

}  // namespace cuop::dist
