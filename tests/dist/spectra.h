// Complex tensors in the tests of distributed transforms.
#pragma once

#include "cuop/dist/plan/fft_plan.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "tests/dist/algo_test.h"

namespace cuop::dist::testing {

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

}  // namespace cuop::dist::testing
