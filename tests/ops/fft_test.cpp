#include "cuop/ops/fft/fft.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numbers>
#include <vector>

#include "cuop/backend/cpu/fft.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/error.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/fft/line_transform_internal.h"
#include "cuop/ops/index/view.h"
#include "tests/error_of.h"

namespace cuop {
namespace {

using Complex = std::complex<double>;

/// Values without symmetry, of magnitude about 1.
double value_at(int64_t i) { return std::sin(0.7 * static_cast<double>(i * i % 1013)) + 0.1; }
std::vector<double> real_signal(int64_t count) {
  std::vector<double> x;
  for (int64_t i = 0; i < count; ++i) x.push_back(value_at(i));
  return x;
}

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

/// Arrays that no cache holds are read and written line by line, others where they are.
TEST(Fft, LinesOfLargeArraysHaveTheBitsOfThoseOfSmallOnes) {
  constexpr int64_t kLines = 310, kLength = 480, kFew = 10;
  const Tensor all = from_values<Complex>({kLines, kLength}, signal(kLines * kLength));
  const Tensor reals =
      from_values<double>({2 * kLines, kLength}, real_signal(2 * kLines * kLength));
  const Tensor whole = fft(all), back = ifft(whole), halves = rfft(reals);
  for (int64_t first = 0; first < kLines; first += kFew) {
    const auto few = [&](const Tensor& x) { return slice(x, 0, first, first + kFew); };
    const auto expect_same = [&](const Tensor& a, const Tensor& b) {
      ASSERT_EQ(a.shape(), b.shape());
      EXPECT_EQ(std::memcmp(a.data(), b.data(), static_cast<size_t>(a.nbytes())), 0) << first;
    };
    expect_same(few(whole), fft(few(all)));
    expect_same(few(back), ifft(few(whole)));
    expect_same(few(halves), rfft(few(reals)));
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
    const std::vector<double> real = real_signal(n);
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

TEST(Fft, SpectraOfSignalsThatAreTheirMirroredConjugatesAreReal) {
  for (const int64_t n : {1, 2, 9, 10, 64, 97}) {
    const std::vector<double> real = real_signal(n);
    const Tensor spectrum = from_values<double>({n}, real);
    const Tensor half = ihfft(spectrum), whole = ifft(spectrum);
    ASSERT_EQ(half.shape(0), n / 2 + 1);
    for (int64_t k = 0; k <= n / 2; ++k) {
      EXPECT_LT(std::abs(half.data<Complex>()[k] - whole.data<Complex>()[k]), 1e-15) << n;
    }
    const Tensor back = hfft(half, n);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_NEAR(back.data<double>()[i], real[static_cast<size_t>(i)], 1e-14);
    }
  }
}

/// One axis of a row-major matrix, cut or padded to n, by the definition.
std::vector<Complex> slow_axis(const std::vector<Complex>& x, int64_t rows, int64_t columns,
                               int axis, int64_t n, int sign) {
  const int64_t lines = axis == 0 ? columns : rows, length = axis == 0 ? rows : columns;
  std::vector<Complex> result(static_cast<size_t>(lines * n));
  for (int64_t line = 0; line < lines; ++line) {
    std::vector<Complex> one(static_cast<size_t>(n));
    for (int64_t i = 0; i < std::min(n, length); ++i) {
      one[static_cast<size_t>(i)] =
          x[static_cast<size_t>(axis == 0 ? i * columns + line : line * columns + i)];
    }
    one = slow_transform(one, sign);
    for (int64_t i = 0; i < n; ++i) {
      result[static_cast<size_t>(axis == 0 ? i * lines + line : line * n + i)] =
          one[static_cast<size_t>(i)];
    }
  }
  return result;
}

TEST(Fft, SeveralAxesAreOneAfterTheOtherEachWithItsLength) {
  const int64_t rows = 6, columns = 10;
  const auto x = signal(rows * columns);
  const Tensor input = from_values<Complex>({rows, columns}, x);
  for (const Dims& s : {Dims{6, 10}, Dims{4, 13}, Dims{9, 7}}) {
    const auto wanted =
        slow_axis(slow_axis(x, rows, columns, 0, s[0], -1), s[0], columns, 1, s[1], -1);
    EXPECT_LT(largest_error(fft2(input, s), wanted), 4e-15) << s;
    EXPECT_LT(largest_error(fftn(input, s), wanted), 4e-15) << s;
    EXPECT_LT(largest_error(fftn(input, Dims{s[1], s[0]}, Dims{1, 0}), wanted), 4e-15) << s;
    EXPECT_LT(largest_error(fftn(input, s, Dims{-2, -1}), wanted), 4e-15) << s;
  }
  // s without axes belongs to the last ones; -1 keeps a length.
  EXPECT_LT(largest_error(fftn(input, Dims{7}), slow_axis(x, rows, columns, 1, 7, -1)), 4e-15);
  EXPECT_LT(largest_error(fftn(input, Dims{-1}, Dims{0}), slow_axis(x, rows, columns, 0, 6, -1)),
            4e-15);
  EXPECT_LT(largest_error(fft(input, 11, 0), slow_axis(x, rows, columns, 0, 11, -1)), 4e-15);
  EXPECT_LT(largest_error(ifftn(fftn(input)), x), 4e-15);
}

TEST(Fft, EachNormScalesTheDirectionItNames) {
  const int64_t n = 12;
  const auto x = signal(n);
  const Tensor input = from_values<Complex>({n}, x);
  const auto scaled = [&](int sign, double factor) {
    auto result = slow_transform(x, sign);
    for (Complex& value : result) value *= factor;
    return result;
  };
  const struct {
    FftNorm norm;
    double forward, backward;
  } cases[] = {{FftNorm::kBackward, 1.0, 1.0 / n},
               {FftNorm::kForward, 1.0 / n, 1.0},
               {FftNorm::kOrtho, 1 / std::sqrt(n), 1 / std::sqrt(n)}};
  for (const auto& [norm, forward, backward] : cases) {
    EXPECT_LT(largest_error(fft(input, {}, -1, norm), scaled(-1, forward)), 4e-15);
    EXPECT_LT(largest_error(ifft(input, {}, -1, norm), scaled(+1, backward)), 4e-15);
    std::vector<double> real;
    for (const Complex& value : x) real.push_back(value.real());
    const Tensor signal_of_reals = from_values<double>({n}, real);
    const Tensor back = irfft(rfft(signal_of_reals, {}, -1, norm), n, -1, norm);
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_NEAR(back.data<double>()[i], real[static_cast<size_t>(i)], 1e-14);
    }
  }
  EXPECT_EQ(parse_fft_norm("ortho", "fft"), FftNorm::kOrtho);
  EXPECT_EQ(parse_fft_norm("forward", "fft"), FftNorm::kForward);
  EXPECT_EQ(parse_fft_norm("backward", "fft"), FftNorm::kBackward);
}

TEST(Fft, SinesAndCosinesFollowTheDefinition) {
  for (const int64_t n : {2, 3, 8, 13}) {
    const std::vector<double> x = real_signal(n);
    const Tensor input = from_values<double>({n}, x);
    const Tensor sines = dst1(input), cosines = dct1(input);
    for (int64_t k = 0; k < n; ++k) {
      double sine = 0, cosine = x.front() + (k % 2 == 0 ? 1 : -1) * x.back();
      for (int64_t j = 0; j < n; ++j) {
        const double value = x[static_cast<size_t>(j)];
        sine += 2 * value * std::sin(std::numbers::pi * double((j + 1) * (k + 1)) / double(n + 1));
        if (j == 0 || j == n - 1) continue;
        cosine += 2 * value * std::cos(std::numbers::pi * double(j * k) / double(n - 1));
      }
      EXPECT_NEAR(sines.data<double>()[k], sine, 1e-13) << n;
      EXPECT_NEAR(cosines.data<double>()[k], cosine, 1e-13) << n;
    }
  }
}

TEST(Fft, FrequenciesAndTheirOrder) {
  const auto values = [](const Tensor& tensor) {
    return std::vector<double>(tensor.data<double>(), tensor.data<double>() + tensor.size());
  };
  using Values = std::vector<double>;
  EXPECT_EQ(values(fftfreq(4, 0.5)), (Values{0.0, 0.5, -1.0, -0.5}));
  EXPECT_EQ(values(fftfreq(5, 0.2)), (Values{0.0, 1.0, 2.0, -2.0, -1.0}));
  EXPECT_EQ(values(rfftfreq(4, 0.5)), (Values{0.0, 0.5, 1.0}));
  EXPECT_EQ(values(rfftfreq(5, 0.2)), (Values{0.0, 1.0, 2.0}));
  for (const int64_t n : {4, 5}) {
    const Tensor ordered = fftshift(fftfreq(n));
    for (int64_t i = 1; i < n; ++i) {
      EXPECT_LT(ordered.data<double>()[i - 1], ordered.data<double>()[i]);
    }
    EXPECT_EQ(values(ifftshift(ordered)), values(fftfreq(n)));
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
  EXPECT_EQ(test::error_of<ShapeError>([] { fft(empty({0})); }),
            "fft: the length along axis 0 is 0, at least 1 is needed");
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

/// Lines for a LineTransform, with room for what its interface asks for.
template <class T>
struct Lines {
  struct alignas(64) Block {
    std::byte bytes[64];
  };
  explicit Lines(int64_t count) : blocks(static_cast<size_t>(count) * sizeof(T) / 64 + 1) {}
  T& operator[](int64_t i) { return reinterpret_cast<T*>(blocks.data())[i]; }
  std::vector<Block> blocks;
};

/// The largest errors of a real line's transforms by one of half the length, over the largest
/// value.
template <class Real>
void expect_half_follows_the_definition(int64_t n, double bound, double back_bound) {
  using Number = std::complex<Real>;
  constexpr bool kDouble = sizeof(Real) == 8;
  const auto forward = spectral::make_half(backend::TransformKind::kRealForward, kDouble, n);
  const auto backward = spectral::make_half(backend::TransformKind::kRealBackward, kDouble, n);
  ASSERT_EQ(forward->batch(), backward->batch());
  const int64_t batch = forward->batch();
  // A single line's transform has no distances of its own.
  const int64_t reals = batch > 1 ? forward->in_distance() : n + 2;
  const int64_t numbers = batch > 1 ? forward->out_distance() : n / 2 + 1;
  Lines<Real> x(batch * reals), work(0), back(batch * reals);
  Lines<Number> spectra(batch * numbers);
  work.blocks.resize(
      static_cast<size_t>(std::max(forward->work_bytes(), backward->work_bytes())) / 64 + 1);
  for (int64_t i = 0; i < batch * reals; ++i) x[i] = static_cast<Real>(value_at(i));
  const auto given = x.blocks;
  forward->execute(&x[0], &spectra[0], &work[0]);
  EXPECT_EQ(std::memcmp(given.data(), x.blocks.data(), given.size() * 64), 0) << n;
  for (const int64_t line : {int64_t{0}, batch - 1}) {
    std::vector<Complex> one;
    for (int64_t j = 0; j < n; ++j) one.emplace_back(x[line * reals + j], 0);
    const auto wanted = slow_transform(one, -1);
    Number* const spectrum = &spectra[line * numbers];
    double error = 0, scale = 0;
    for (int64_t k = 0; k <= n / 2; ++k) {
      const auto& value = wanted[static_cast<size_t>(k)];
      error = std::max(error, std::abs(Complex(spectrum[k]) - value));
      scale = std::max(scale, std::abs(value));
    }
    EXPECT_LT(error, bound * scale) << n;
    EXPECT_EQ(spectrum[0].imag(), Real{0}) << n;
    EXPECT_EQ(spectrum[n / 2].imag(), Real{0}) << n;
  }
  std::vector<Complex> last(static_cast<size_t>(n));  // of the last line, before it is overwritten
  for (int64_t k = 0; k < n; ++k) {
    const Number value = spectra[(batch - 1) * numbers + std::min(k, n - k)];
    last[static_cast<size_t>(k)] = 2 * k <= n ? Complex(value) : std::conj(Complex(value));
  }
  for (int64_t l = 0; l < batch; ++l) {  // to be ignored
    spectra[l * numbers] += Number(0, 3);
    spectra[l * numbers + n / 2] -= Number(0, 5);
  }
  backward->execute(&spectra[0], &back[0], &work[0]);
  const auto line = slow_transform(last, +1);
  double error = 0, scale = 0;
  for (int64_t j = 0; j < n; ++j) {
    const double value = line[static_cast<size_t>(j)].real();
    error = std::max(error, std::abs(back[(batch - 1) * reals + j] - value));
    scale = std::max(scale, std::abs(value));
  }
  EXPECT_LT(error, back_bound * scale) << n;
}

class HalfTransform : public testing::TestWithParam<int64_t> {};

/// Backward the library's own transform of float has up to 4.4e-7 for such lines: a line's values
/// are all about as large, a spectrum's largest is far above the others.
TEST_P(HalfTransform, FollowsTheDefinition) {
  expect_half_follows_the_definition<float>(GetParam(), 3e-7, 6e-7);
  expect_half_follows_the_definition<double>(GetParam(), 1e-15, 2e-15);
}

INSTANTIATE_TEST_SUITE_P(ShortLongSmallFactorsAndPrimes, HalfTransform,
                         testing::Values(2, 4, 6, 8, 10, 14, 16, 18, 30, 32, 34, 36, 60, 62, 64, 66,
                                         96, 100, 122, 128, 130, 206, 208, 256, 480, 1000, 1018,
                                         1024, 2018, 2048, 4096));

TEST(PrefersHalf, ShortLinesAndFloatsOfLengthsThatVectorsLike) {
  const auto prefers = [](bool is_double, int64_t n) {
    const bool forward = spectral::prefers_half(backend::TransformKind::kRealForward, is_double, n);
    EXPECT_EQ(forward, spectral::prefers_half(backend::TransformKind::kRealBackward, is_double, n))
        << n;
    return forward;
  };
  for (const bool is_double : {false, true}) {
    for (const int64_t n : {2, 12, 15, 66, 200, 1002, 1025, 1 << 20}) {
      EXPECT_FALSE(prefers(is_double, n)) << n;
    }
    for (const int64_t n : {14, 30, 32, 64}) EXPECT_TRUE(prefers(is_double, n)) << n;
    for (const int64_t n : {96, 128, 208, 2048, 1 << 17})
      EXPECT_EQ(prefers(is_double, n), !is_double);
    constexpr int64_t kLong = int64_t{1} << 22;
    EXPECT_FALSE(spectral::prefers_half(backend::TransformKind::kRealForward, is_double, kLong));
    EXPECT_TRUE(spectral::prefers_half(backend::TransformKind::kRealBackward, is_double, kLong));
    EXPECT_FALSE(
        spectral::prefers_half(backend::TransformKind::kRealBackward, is_double, 4 * kLong));
  }
}

/// Of long lines as well, which several threads work on, and of what is not finite.
TEST(Fft, RealLinesOfEvenLengthHaveTheSameBitsInEverySetting) {
  for (const int64_t n : {16, 62, 64, 96, 480, 1018, 2048, 65536, 1 << 21}) {
    const int64_t lines = n < 4096 ? 19 : 2;
    std::vector<float> values;
    for (int64_t i = 0; i < lines * n; ++i) values.push_back(static_cast<float>(value_at(i)));
    const Tensor x = from_values<float>({lines, n}, values);
    const Tensor spectra = rfft(x), back = irfft(spectra);
    const auto expect_same = [&](const Tensor& a, const Tensor& b) {
      ASSERT_EQ(a.shape(), b.shape());
      EXPECT_EQ(std::memcmp(a.data(), b.data(), static_cast<size_t>(a.nbytes())), 0) << n;
    };
    for (const int64_t line : {int64_t{0}, lines - 1}) {
      expect_same(select(spectra, 0, line), rfft(select(x, 0, line)));
      expect_same(select(back, 0, line), irfft(select(spectra, 0, line)));
    }
    backend::set_thread_count(3);
    const Tensor by_several = rfft(select(x, 0, 0)), back_by_several = irfft(by_several);
    backend::set_thread_count(1);
    expect_same(by_several, rfft(select(x, 0, 0)));
    expect_same(back_by_several, irfft(by_several));
    backend::set_thread_count(0);
    for (const float odd : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
      values[static_cast<size_t>(n / 3)] = odd;  // of the first line only
      const Tensor spoilt = rfft(from_values<float>({lines, n}, values));
      for (int64_t k = 0; k <= n / 2; ++k) {
        const std::complex<float> value = spoilt.data<std::complex<float>>()[k];
        ASSERT_FALSE(std::isfinite(value.real()) && std::isfinite(value.imag())) << n;
      }
      expect_same(select(spectra, 0, lines - 1), select(spoilt, 0, lines - 1));
    }
  }
}

TEST(SplitWays, CutLongLinesIntoPartsThatFitTheCache) {
  EXPECT_EQ(spectral::split_ways(false, 8192), 1);
  EXPECT_EQ(spectral::split_ways(false, 16384), 4);
  EXPECT_EQ(spectral::split_ways(true, 16384), 8);
  EXPECT_EQ(spectral::split_ways(false, 1 << 20), 64);
  EXPECT_EQ(spectral::split_ways(false, 20480), 8);
  EXPECT_EQ(spectral::split_ways(false, 20160), 1);  // few factors 2
  EXPECT_EQ(spectral::split_ways(false, 204800), 64);
  EXPECT_EQ(spectral::split_ways(true, 49152), 32);  // 24 would do
  EXPECT_EQ(spectral::split_ways(false, 16385), 1);
  EXPECT_EQ(spectral::split_ways(false, int64_t{1} << 23), 1);
}

TEST(SmoothLength, IsTheCheapestOfSmallFactors) {
  for (const bool is_double : {false, true}) {
    for (int64_t n : {1, 2, 11, 13, 97, 1000, 2017, 100003}) {
      const int64_t length = spectral::smooth_length(n, is_double);
      int64_t rest = length;
      for (int64_t p : {2, 3, 5, 7}) {
        while (rest % p == 0) rest /= p;
      }
      EXPECT_EQ(rest, 1);
      EXPECT_GE(length, n);
      EXPECT_LE(length, 2 * n);
    }
    EXPECT_EQ(spectral::smooth_length(1000, is_double), 1024);
    EXPECT_EQ(spectral::smooth_length(20013, is_double), 20160);  // 20480 has too many factors 2
  }
}

}  // namespace
}  // namespace cuop
