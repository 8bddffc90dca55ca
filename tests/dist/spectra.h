// Complex tensors in the tests of distributed transforms.
#pragma once

#include "cuop/core/text.h"
#include "cuop/dist/algo/fft.h"
#include "cuop/dist/plan/fft_plan.h"
#include "cuop/dist/plan/map_plan.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/fft/fft.h"
#include "tests/dist/algo_test.h"

namespace cuop::dist::rank_test {

inline constexpr FftKind kKinds[] = {FftKind::kFft, FftKind::kIfft, FftKind::kRfft,
                                     FftKind::kIrfft};

inline Tensor complex_noise(const Shape& shape) {
  return add(noise(shape), multiply(noise(shape, DType::kFloat64, 9), std::complex<double>(0, 1)));
}

/// A complex tensor as a real one with a last dimension of 2, to compare with expect_close.
inline Tensor parts_of(const Tensor& x) {
  return is_complex(x.dtype()) ? as_real(contiguous(x)) : x;
}

inline void expect_spectrum(const CommunicatorPtr& comm, const Tensor& given,
                            const Tensor& expected, double tolerance, const std::string& what) {
  if (comm->rank() != 0) {
    EXPECT_FALSE(given.is_defined()) << what;
    return;
  }
  ASSERT_EQ(given.dtype(), expected.dtype()) << what;
  expect_close(parts_of(given), parts_of(expected), tolerance, what);
}

/// What a transform of that kind takes.
inline Tensor input_of(FftKind kind, const Shape& shape, DType real = DType::kFloat64) {
  return kind == FftKind::kRfft ? noise(shape, real)
                                : cast(complex_noise(shape), complex_dtype(real));
}

/// The operator on one tensor.
inline Tensor transformed(FftKind kind, const Tensor& x, FftSize n, int64_t dim = -1,
                          FftNorm norm = FftNorm::kBackward) {
  constexpr decltype(&cuop::fft) kFunctions[] = {cuop::fft, cuop::ifft, cuop::rfft, cuop::irfft};
  return kFunctions[static_cast<size_t>(kind)](x, n, dim, norm, nullptr);
}

/// The call on parts of `whole`: where its result lies, its dtype and its values.
inline void expect_transformed(const DistTensor& x, const Tensor& whole, const FftBatch& batch,
                               const CallOptions& options, double tolerance) {
  const DistTensor made = fft(x, batch, options);
  const std::string what = cat(x.comm().size(), " ranks, ", x.shape(), " along ", batch.dim, " as ",
                               batch.n.value_or(-1), " kind ", static_cast<int>(batch.kind),
                               " from ", x.sharding(), " to ", made.sharding());
  EXPECT_TRUE(!options.output || made.sharding() == *options.output) << what;
  const Tensor expected = transformed(batch.kind, whole, batch.n, batch.dim, batch.norm);
  ASSERT_EQ(made.dtype(), expected.dtype()) << what;
  expect_close(parts_of(gather_all(made)), parts_of(expected), tolerance, what);
}

inline FftProblem line_problem(FftKind kind, int64_t n, const Sharding& at, DType dtype) {
  return {"fft", {"x", {kind == FftKind::kIrfft ? n / 2 + 1 : n}, dtype, at}, kind, {0}, {n}, {}};
}

/// One line of each of these lengths by a strategy; which kinds and forms of the call it is tried
/// in changes with the length.
inline void try_every_length(int ranks, const std::vector<int64_t>& lengths,
                             const CallOptions& forced) {
  run_ranks(ranks, [&](const CommunicatorPtr& comm) {
    const Sharding at = split_over_ranks(ranks, 1, 0);
    for (const int64_t n : lengths) {
      for (const FftKind kind : {kKinds[n / 2 % 2], kKinds[2 + n / 2 % 2]}) {
        const Tensor x = input_of(kind, {kind == FftKind::kIrfft ? n / 2 + 1 : n});
        const std::string what = cat(n, " on ", ranks, " kind ", static_cast<int>(kind));
        const Tensor expected = transformed(kind, x, n);
        if (n / 4 % 2 == 0) {
          expect_spectrum(comm, fft_from_root(comm, on_root(comm, x), {kind, n}, forced), expected,
                          1e-12, what);
        } else {
          const DistTensor made = fft(laid_out(comm, x, at), {kind, n}, forced);
          expect_close(parts_of(gather_all(made)), parts_of(expected), 1e-12, "in parts " + what);
        }
      }
    }
  });
}

/// From `first` to `last`, or some of them.
inline std::vector<int64_t> lengths_between(int64_t first, int64_t last) {
  const int64_t step = is_slow() ? 7 : 1;
  std::vector<int64_t> lengths;
  for (int64_t n = first; n <= last; n += step) lengths.push_back(n);
  return lengths;
}

}  // namespace cuop::dist::rank_test
