// Random tensors, and comparison of a GPU's answers with the CPU's.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"

namespace cuop::test {

/// Numbers that every dtype holds: small ones of both signs where there are signs, and for floats
/// fractions too, zeros among them.
inline Tensor random_tensor(const Shape& shape, DType dtype, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  const int64_t parts = is_complex(dtype) ? 2 : 1;
  const Tensor values = empty(shape, parts == 2 ? DType::kComplex128 : DType::kFloat64);
  auto* const part = static_cast<double*>(values.data());
  const bool is_whole = is_integer(dtype) || is_bool(dtype);
  const bool is_signed = is_signed_integer(dtype) || !is_whole;
  const auto draw = [&] {
    if (is_bool(dtype)) return static_cast<double>(random() % 2);
    const double size = is_whole ? static_cast<double>(random() % 100)
                                 : static_cast<double>(random() % 4096) / 1024;
    return is_signed && random() % 2 != 0 ? -size : size;
  };
  for (int64_t i = 0; i < parts * values.size(); ++i) part[i] = draw();
  return cast(values, dtype);
}

inline double epsilon(DType dtype) {
  switch (real_dtype(dtype)) {
    case DType::kFloat16:
      return 0x1p-10;
    case DType::kBFloat16:
      return 0x1p-7;
    case DType::kFloat32:
      return 0x1p-23;
    case DType::kFloat64:
      return 0x1p-52;
    default:
      return 0.0;
  }
}

/// Elements differ by at most `ulps` units in the last place of the larger part, or of `least`
/// where that is larger still; NaN equals NaN.
inline void expect_same(const Tensor& given, const Tensor& wanted, double ulps,
                        const std::string& what, double least = 0.0) {
  ASSERT_EQ(given.dtype(), wanted.dtype()) << what;
  ASSERT_EQ(given.shape(), wanted.shape()) << what;
  const Tensor a = cast(to_device(given, kCpu), DType::kComplex128);
  const Tensor b = cast(to_device(wanted, kCpu), DType::kComplex128);
  const auto* x = a.data<std::complex<double>>();
  const auto* y = b.data<std::complex<double>>();
  const double unit = ulps * epsilon(wanted.dtype());
  int shown = 0;
  for (int64_t i = 0; i < a.size() && shown < 3; ++i) {
    const double size = std::max(std::abs(y[i].real()), std::abs(y[i].imag()));
    const double scale = size < least ? least : size;  // NaN stays
    const auto differs = [&](double mine, double theirs) {
      if (std::isnan(theirs) || std::isnan(mine)) return std::isnan(theirs) != std::isnan(mine);
      if (mine == theirs || std::isnan(scale)) return false;
      return !(std::abs(mine - theirs) <= unit * scale);
    };
    if (!differs(x[i].real(), y[i].real()) && !differs(x[i].imag(), y[i].imag())) continue;
    ADD_FAILURE() << what << ": element " << i << " is " << x[i] << " instead of " << y[i];
    ++shown;
  }
}

}  // namespace cuop::test
