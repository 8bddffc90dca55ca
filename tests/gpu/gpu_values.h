// Values for tests that compare a GPU's results with the CPU's.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <random>
#include <string>
#include <vector>

#include "tests/gpu/compare.h"
#include "tests/gpu/gpu_test.h"

namespace cuop {

/// Uniform in [-1, 1], both parts of complex ones; on the CPU.
inline Tensor random_values(const Shape& shape, uint32_t seed, DType dtype) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> values(-1.0, 1.0);
  return test::drawn(shape, dtype, [&] { return values(generator); });
}

inline Tensor gpu(const Tensor& t) { return to_device(t, kGpu); }

inline std::vector<std::complex<double>> host_values(const Tensor& t) {
  const Tensor dense = contiguous(cast(to_device(t, kCpu), DType::kComplex128));
  const auto* first = dense.data<std::complex<double>>();
  return {first, first + dense.size()};
}

/// Expects equal shapes and dtypes, and differences of at most `tolerance` times the largest value.
inline void expect_close(const Tensor& got, const Tensor& expected, double tolerance,
                         const std::string& what = "") {
  ASSERT_EQ(got.shape(), expected.shape()) << what;
  ASSERT_EQ(got.dtype(), expected.dtype()) << what;
  EXPECT_EQ(got.device(), kGpu) << what;
  const auto a = host_values(got), b = host_values(expected);
  double largest = 0, worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(b[i]));
    const double difference = std::abs(a[i] - b[i]);
    worst = std::isnan(difference) ? HUGE_VAL : std::max(worst, difference);
  }
  EXPECT_LE(worst, tolerance * std::max(largest, 1e-3))
      << got.dtype() << ' ' << got.shape() << ' ' << what;
}

}  // namespace cuop
