#include "cuop/ops/fft/fft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "cuop/backend/cpu/fft.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/error.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/fft/line_transform_internal.h"
#include "cuop/ops/index/view.h"

namespace cuop {
namespace {

using Complex = std::complex<double>;

/// Values without symmetry, of magnitude about 1.
double value_at(int64_t i) { return std::sin(0.7 * static_cast<double>(i * i % 1013)) + 0.1; }

std::vector<Complex> signal(int64_t count) {
  std::vector<Complex> x;
  for (int64_t i = 0; i < count; ++i) x.emplace_back(value_at(i), value_at(3 * i + 5));
  return x;
}

/// The definition, in long double.
std::vector<Complex> slow_transform(const std::vector<Complex>& x, int sign) {
  const auto n = static_cast<int64_t>(x.size());
  std::vector<std::complex<long double>> roots;
  for (int64_t j = 0; j < n; ++j) {
    const long double angle = 2 * std::numbers::pi_v<long double> * static_cast<long double>(j) /
                              static_cast<long double>(n);
    roots.emplace_back(std::cos(angle), sign * std::sin(angle));
  }
  std::vector<Complex> result;
  for (int64_t k = 0; k < n; ++k) {
    std::complex<long double> sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      const auto& value = x[static_cast<size_t>(j)];
      sum += std::complex<long double>(value.real(), value.imag()) *
             roots[static_cast<size_t>(j * k % n)];
    }
    result.emplace_back(static_cast<double>(sum.real()), static_cast<double>(sum.imag()));
  }
  return result;
}

double largest_error(const Tensor& given, const std::vector<Complex>& wanted) {
  double error = 0, scale = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    error = std::max(error, std::abs(given.data<Complex>()[i] - wanted[i]));
    scale = std::max(scale, std::abs(wanted[i]));
  }
  return error / scale;
}

class FftLength : public testing::TestWithParam<int64_t> {};

TEST_P(FftLength, FollowsTheDefinition) {
  const auto x = signal(GetParam());
  const Tensor input = from_values<Complex>({GetParam()}, x);
  EXPECT_LT(largest_error(fft(input), slow_transform(x, -1)), 4e-15);
  EXPECT_LT(largest_error(ifft(input, {}, -1, FftNorm::kForward), slow_transform(x, +1)), 4e-15);
  EXPECT_LT(largest_error(ifft(fft(input)), x), 4e-15);
}

INSTANTIATE_TEST_SUITE_P(SmallCompositePrime, FftLength,
                         testing::Values(1, 2, 3, 7, 16, 17, 60, 64, 97, 100, 131, 251, 256, 509,
                                         1000, 1009, 2018));

TEST(Fft, ALineHasTheSameBitsAloneAndAmongOthers) {
  for (const int64_t n : {5, 24, 63, 64, 210, 1009, 16384, 20000}) {
    const int64_t lines = n < 2000 ? 37 : 3;
    const Tensor all = from_values<Complex>({lines, n}, signal(lines * n));
    const Tensor together = fft(all);
    const Tensor across = fft(transpose(all), {}, 0);
    for (int64_t i = 0; i < lines; ++i) {
      const Tensor one = fft(select(all, 0, i));
      for (int64_t k = 0; k < n; ++k) {
        ASSERT_EQ(one.data<Complex>()[k], together.data<Complex>()[i * n + k]) << n;
        ASSERT_EQ(one.data<Complex>()[k], across.data<Complex>()[k * lines + i]) << n;
      }
    }
  }
}

TEST(Fft, ThreadsDoNotChangeBits) {
  const Shape shapes[] = {{48, 600}, {1, 65536}, {1, 100003}};
  for (const Shape& shape : shapes) {
    const Tensor x = from_values<Complex>(shape, signal(element_count(shape)));
    const Tensor many = fft2(x);
    backend::set_thread_count(1);
    const Tensor one = fft2(x);
    backend::set_thread_count(0);
    for (int64_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(many.data<Complex>()[i], one.data<Complex>()[i]) << shape;
    }
  }
}

TEST(Fft, RealHalvesAgreeWithTheWhole) {
  for (const int64_t n : {1, 2, 9, 10, 62, 63, 64, 127, 1009}) {
    std::vector<double> real;
    for (int64_t i = 0; i < n; ++i) real.push_back(value_at(i));
    const Tensor x = from_values<double>({n}, real);
    const Tensor half = rfft(x), whole = fft(x);
    ASSERT_EQ(half.shape(0), n / 2 + 1);
    for (int64_t k = 0; k <= n / 2; ++k) {
      ASSERT_EQ(half.data<Complex>()[k], whole.data<Complex>()[k]);
      ASSERT_EQ(std::conj(half.data<Complex>()[k]), whole.data<Complex>()[(n - k) % n]) << n;
    }
    const Tensor back = irfft(half, n);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_NEAR(back.data<double>()[i], real[static_cast<size_t>(i)], 1e-14);
    }
  }
}

TEST(Fft, SaysWhatIsWrong) {
  const Tensor x = from_values<double>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THROW(fft(x, 0), ShapeError);
  EXPECT_THROW(fft(x, -4), ShapeError);
  EXPECT_THROW(fft(x, {}, 2), ShapeError);
  EXPECT_THROW(rfft(fft(x)), DTypeError);
  EXPECT_THROW(fftn(x, Dims{2}, Dims{0, 1}), ShapeError);
  EXPECT_THROW(fftn(x, {}, Dims{0, -2}), ShapeError);
  EXPECT_THROW(fft2(from_values<double>({3}, {1, 2, 3})), ShapeError);
  EXPECT_THROW(dct1(from_values<double>({1}, {2})), ShapeError);
  EXPECT_THROW(parse_fft_norm("none", "fft"), ExecutionError);
  try {
    fft(empty({0}));
    FAIL();
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "fft: the length along axis 0 is 0, at least 1 is needed");
  }
}

TEST(Fft, RefusesAnOutputThatSharesMemory) {
  const Tensor x = from_values<Complex>({4}, signal(4));
  EXPECT_THROW(fft(x, {}, -1, FftNorm::kBackward, &x), ExecutionError);
}

TEST(FftLibrary, TellsWhereItWasFound) {
  const backend::FftInfo info = backend::fft_info();
  ASSERT_TRUE(info.is_available) << info.description;
  EXPECT_NE(info.description.find("fftw"), std::string::npos);
}

TEST(SplitWays, CutLongLinesIntoPartsThatFitTheCache) {
  EXPECT_EQ(spectral::split_ways(false, 8192), 1);
  EXPECT_EQ(spectral::split_ways(false, 16384), 4);
  EXPECT_EQ(spectral::split_ways(true, 16384), 8);
  EXPECT_EQ(spectral::split_ways(false, 1 << 20), 64);
  EXPECT_EQ(spectral::split_ways(false, 16385), 1);
  EXPECT_EQ(spectral::split_ways(false, int64_t{1} << 23), 1);
}

TEST(SmoothLength, IsTheCheapestOfSmallFactors) {
  for (int64_t n : {1, 2, 11, 13, 97, 1000, 2017, 100003}) {
    const int64_t length = spectral::smooth_length(n);
    int64_t rest = length;
    for (int64_t p : {2, 3, 5, 7}) {
      while (rest % p == 0) rest /= p;
    }
    EXPECT_EQ(rest, 1);
    EXPECT_GE(length, n);
    EXPECT_LE(length, 2 * n);
  }
}

}  // namespace
}  // namespace cuop
