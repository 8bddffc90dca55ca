// Random tensors, and comparison of a GPU's answers with the CPU's.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <random>
#include <string>

#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"

namespace cuop::test {

/// A tensor of what draw() answers, called for each part of complex numbers; on the CPU.
template <class Draw>
Tensor drawn(const Shape& shape, DType dtype, Draw&& draw) {
  const int64_t parts = is_complex(dtype) ? 2 : 1;
  const Tensor values = empty(shape, parts == 2 ? DType::kComplex128 : DType::kFloat64);
  auto* const part = static_cast<double*>(values.data());
  for (int64_t i = 0; i < parts * values.size(); ++i) part[i] = static_cast<double>(draw());
  return cast(values, dtype);
}

/// Numbers that every dtype holds: small ones of both signs where there are signs, and for floats
/// fractions too, zeros among them.
inline Tensor random_tensor(const Shape& shape, DType dtype, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  const bool is_whole = is_integer(dtype) || is_bool(dtype);
  const bool is_signed = is_signed_integer(dtype) || !is_whole;
  return drawn(shape, dtype, [&] {
    if (is_bool(dtype)) return static_cast<double>(random() % 2);
    const double size = is_whole ? static_cast<double>(random() % 100)
                                 : static_cast<double>(random() % 4096) / 1024;
    return is_signed && random() % 2 != 0 ? -size : size;
  });
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

/// Both parts of elements differ by at most allowed(the wanted element); NaN equals NaN, and beside
/// a real part that is NaN the imaginary one is free.
template <class Allowed>
void expect_elements(const Tensor& given, const Tensor& wanted, const std::string& what,
                     Allowed&& allowed) {
  ASSERT_EQ(given.dtype(), wanted.dtype()) << what;
  ASSERT_EQ(given.shape(), wanted.shape()) << what;
  const Tensor a = contiguous(cast(to_device(given, kCpu), DType::kComplex128));
  const Tensor b = contiguous(cast(to_device(wanted, kCpu), DType::kComplex128));
  const auto* x = a.data<std::complex<double>>();
  const auto* y = b.data<std::complex<double>>();
  int shown = 0;
  for (int64_t i = 0; i < a.size() && shown < 3; ++i) {
    const double most = allowed(y[i]);
    const auto differs = [&](double mine, double theirs) {
      if (std::isnan(theirs) || std::isnan(mine)) return std::isnan(theirs) != std::isnan(mine);
      if (mine == theirs || std::isnan(y[i].real())) return false;
      return !(std::abs(mine - theirs) <= most);
    };
    if (!differs(x[i].real(), y[i].real()) && !differs(x[i].imag(), y[i].imag())) continue;
    ADD_FAILURE() << what << ": element " << i << " is " << x[i] << " instead of " << y[i];
    ++shown;
  }
}

/// Elements differ by at most `ulps` units in the last place of the larger part, or of `least`
/// where that is larger still.
inline void expect_same(const Tensor& given, const Tensor& wanted, double ulps,
                        const std::string& what, double least = 0.0) {
  const double unit = ulps * epsilon(wanted.dtype());
  expect_elements(given, wanted, what, [&](const std::complex<double>& element) {
    const double size = std::max(std::abs(element.real()), std::abs(element.imag()));
    return unit * std::max(size, least);
  });
}

}  // namespace cuop::test
