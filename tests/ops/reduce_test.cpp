#include "cuop/ops/reduce/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/jit/fusion.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/index/view.h"

namespace cuop {
namespace {

std::vector<double> normal(size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> value;
  std::vector<double> result(n);
  for (double& x : result) x = value(random);
  return result;
}

Tensor tensor(const Shape& shape, const std::vector<double>& values) {
  return from_values<double>(shape, std::span<const double>(values));
}

double item(const Tensor& t) { return *t.data<double>(); }

TEST(Reduce, SumsOverAnyAxes) {
  const Tensor x = arange(0, 24, 1, DType::kFloat64);
  const Tensor cube = reshape(x, {2, 3, 4});
  EXPECT_EQ(item(sum(cube)), 276.0);
  EXPECT_EQ(sum(cube, {0, 2}).shape(), (Shape{3}));
  EXPECT_EQ(sum(cube, {0, 2}).data<double>()[1], 92.0);
  EXPECT_EQ(sum(cube, {-1}, true).shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(sum(transpose(cube), {0, 2}).data<double>()[1], 92.0);
}

TEST(Reduce, OverNoAxisTakesEachElementAlone) {
  const Tensor x = tensor({2, 3}, {1, -2, 3, -4, 5, -6});
  const std::vector<int64_t> empty;
  for (const Axes axes : {Axes::none(), Axes::exactly(empty), Axes(ReduceAxes::exactly({}))}) {
    const Tensor sums = sum(x, axes, true), norms = norm(x, 2.0, axes);
    ASSERT_EQ(sums.shape(), x.shape());
    EXPECT_TRUE(std::equal(x.data<double>(), x.data<double>() + 6, sums.data<double>()));
    EXPECT_EQ(norms.data<double>()[3], 4.0);
    EXPECT_EQ(max(x, axes).shape(), x.shape());
  }
  // What is empty by chance still means all.
  EXPECT_EQ(sum(x, empty).ndim(), 0);
  EXPECT_EQ(sum(x, ReduceAxes(empty)).ndim(), 0);
  Shape full;
  for (int dim = 0; dim < kMaxDims; ++dim) full.push_back(1);
  EXPECT_THROW(sum(ones(full, DType::kFloat64), Axes::none()), ShapeError);
}

TEST(Reduce, GivesTheDtypesOfNumPy) {
  EXPECT_EQ(sum(ones({3}, DType::kInt8)).dtype(), DType::kInt64);
  EXPECT_EQ(sum(ones({3}, DType::kBool)).dtype(), DType::kInt64);
  EXPECT_EQ(sum(ones({3}, DType::kUInt16)).dtype(), DType::kUInt64);
  EXPECT_EQ(sum(ones({3}, DType::kFloat16)).dtype(), DType::kFloat16);
  EXPECT_EQ(mean(ones({3}, DType::kInt32)).dtype(), DType::kFloat64);
  EXPECT_EQ(var(ones({3}, DType::kComplex64)).dtype(), DType::kFloat32);
  EXPECT_EQ(max(ones({3}, DType::kInt16)).dtype(), DType::kInt16);
}

TEST(Reduce, RoundsHalfPrecisionOnce) {
  // In float16 every partial sum beyond 2048 would stand still.
  const Tensor x = ones({4096}, DType::kFloat16);
  EXPECT_EQ(static_cast<float>(*sum(x).data<Half>()), 4096.0f);
}

TEST(Reduce, GivesTheSameBitsForAnyNumberOfThreads) {
  const Tensor x = tensor({300, 1001}, normal(300 * 1001, 3));
  for (const SumMode mode : {SumMode::kPlain, SumMode::kCompensated, SumMode::kExact}) {
    std::vector<double> seen[2];
    for (int threads = 1; threads <= 2; ++threads) {
      backend::set_thread_count(threads);
      auto& bits = seen[threads - 1];
      bits.push_back(item(sum(x, {}, false, mode)));
      for (const int64_t axis : {0, 1}) {
        const Tensor part = sum(x, {axis}, false, mode);
        bits.insert(bits.end(), part.data<double>(), part.data<double>() + part.size());
      }
    }
    backend::set_thread_count(0);
    EXPECT_EQ(seen[0], seen[1]) << name(mode);
  }
}

TEST(Reduce, PlainSumErrsByTheLogarithmOfTheCount) {
  const int64_t n = 1 << 22;
  const Tensor x = full({n, 2}, 0.1f, DType::kFloat32);
  const double truth = static_cast<double>(n) * static_cast<double>(0.1f);
  EXPECT_NEAR(*sum(slice(x, 1, 0, 1)).data<float>(), truth, truth * 4e-7);
  EXPECT_NEAR(sum(x, {0}).data<float>()[1], truth, truth * 4e-7);
}

TEST(Reduce, CompensatedSumDoesNotErrWithTheCount) {
  std::vector<double> values = normal(100'001, 5);
  values.push_back(1e17);
  for (size_t i = 0; i < 100'001; ++i) values.push_back(-values[i]);
  values.push_back(-1e17);
  values.push_back(0.25);
  const Tensor x = tensor({static_cast<int64_t>(values.size())}, values);
  EXPECT_EQ(item(sum(x, {}, false, SumMode::kExact)), 0.25);
  EXPECT_NEAR(item(sum(x, {}, false, SumMode::kCompensated)), 0.25, 1e-9);
}

TEST(Reduce, ExactSumNeedsNoParticularData) {
  const double huge = std::numeric_limits<double>::max();
  std::vector<double> values(5000, 0.1);
  values[17] = huge;
  values[4000] = -huge;
  values[4001] = std::numeric_limits<double>::denorm_min();
  ASSERT_TRUE(std::isinf(huge + huge));
  values.push_back(huge);
  values.push_back(huge);
  values.push_back(-huge);
  values.push_back(-huge);
  const double tenth = 0.1 * 4997;  // the true sum of 4997 tenths, rounded once
  EXPECT_NEAR(item(sum(tensor({5004}, values), {}, false, SumMode::kExact)), tenth, 1e-13);
}

TEST(Reduce, EmptyReductionsAreIdentitiesOrErrors) {
  const Tensor none = empty({0, 3}, DType::kFloat64);
  EXPECT_EQ(item(sum(none)), 0.0);
  EXPECT_EQ(item(prod(none)), 1.0);
  EXPECT_TRUE(std::isnan(item(mean(none))));
  EXPECT_FALSE(*any(none).data<bool>());
  EXPECT_TRUE(*all(none).data<bool>());
  EXPECT_EQ(max(none, {1}).shape(), (Shape{0}));
  EXPECT_THROW(max(none), ShapeError);
  EXPECT_THROW(argmin(none), ShapeError);
}

TEST(Reduce, FindsTheFirstExtremeAndNaNWins) {
  const double nan = std::nan("");
  const Tensor x = from_values<double>({2, 4}, {1.0, 3.0, 3.0, 0.0, 5.0, nan, 7.0, nan});
  EXPECT_EQ(*argmax(x).data<int64_t>(), 5);
  EXPECT_EQ(argmax(x, 1).data<int64_t>()[0], 1);
  EXPECT_EQ(argmax(x, 1).data<int64_t>()[1], 1);
  EXPECT_EQ(argmin(x, 0).data<int64_t>()[1], 1);
  EXPECT_TRUE(std::isnan(item(max(x))));
  EXPECT_EQ(item(min(x, {1})), 0.0);
}

/// Lines are not read beyond an element that decides: it stands at any place or nowhere, in lines
/// of one part and of several.
TEST(Reduce, AnElementThatDecidesStandsAnywhere) {
  for (const int64_t length : {1, 63, 64, 4097, 70000, 200001}) {
    for (int64_t place = -1; place < length; place += std::max<int64_t>(1, length / 7)) {
      for (const uint8_t decides : {uint8_t{0}, uint8_t{1}, uint8_t{255}}) {
        const uint8_t other = decides == 0 ? 1 : 0;
        std::vector<uint8_t> values(static_cast<size_t>(2 * length), other);
        // The second line has it, too, if at all, at its end.
        if (place >= 0) values[static_cast<size_t>(place)] = decides;
        if (place >= 0) values.back() = decides;
        const Tensor x = from_values<uint8_t>({2, length}, std::span<const uint8_t>(values));
        const Tensor flags = not_equal(x, 0);
        const std::string what = cat(length, " elements, at ", place, ' ', int{decides});
        const auto at = [&](const Tensor& found, int64_t line) {
          return int64_t{found.data<uint8_t>()[line]};
        };
        const int64_t least =
            place >= 0 ? std::min<int64_t>(decides, length > 1 ? other : decides) : int64_t{other};
        const int64_t most =
            place >= 0 ? std::max<int64_t>(decides, length > 1 ? other : decides) : int64_t{other};
        EXPECT_EQ(at(max(x, {1}), 0), most) << what;
        EXPECT_EQ(at(min(x, {1}), 0), least) << what;
        EXPECT_EQ(at(max(x, {1}), 1), most) << what;
        EXPECT_EQ(at(min(x, {1}), 1), least) << what;
        EXPECT_EQ(*any(x).data<bool>(), most > 0) << what;
        EXPECT_EQ(*all(x).data<bool>(), least > 0) << what;
        EXPECT_EQ(*any(flags).data<bool>(), most > 0) << what;
        EXPECT_EQ(all(flags, {1}).data<bool>()[1], least > 0) << what;
        const bool is_high = decides != 0;
        const int64_t expected = place >= 0 ? place : 0, last = place >= 0 ? length - 1 : 0;
        for (const Tensor& each : {x, flags}) {
          const Tensor found = is_high ? argmax(each, 1) : argmin(each, 1);
          EXPECT_EQ(found.data<int64_t>()[0], expected) << what;
          EXPECT_EQ(found.data<int64_t>()[1], last) << what;
        }
      }
    }
  }
}

/// The first place of the largest number, or of the first NaN.
int64_t place_of_largest(const std::vector<double>& line) {
  size_t place = 0;
  for (size_t i = 0; i < line.size() && !std::isnan(line[place]); ++i) {
    if (std::isnan(line[i]) || line[i] > line[place]) place = i;
  }
  return static_cast<int64_t>(place);
}

/// Of few numbers, so that many are equal, in lines of any length and step.
TEST(Reduce, TheFirstOfEqualNumbersIsTheExtremesPlace) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::mt19937 random(3);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kInt32,
                            DType::kInt64, DType::kUInt64, DType::kInt8, DType::kUInt8}) {
    for (const int64_t length : {1, 2, 7, 15, 16, 31, 32, 33, 37, 63, 64, 65, 129, 1000, 5003}) {
      for (int trial = 0; trial < 6; ++trial) {
        std::vector<double> numbers(static_cast<size_t>(length));
        for (double& x : numbers) x = static_cast<double>(random() % (trial < 3 ? 3 : 100));
        if (is_floating(dtype) && trial % 3 > 0) {
          for (size_t k = 0; k < numbers.size(); k += 1 + random() % 500) {
            numbers[random() % numbers.size()] = random() % 2 == 0 ? kInfinity : -kInfinity;
          }
          if (trial % 3 == 2) numbers[random() % numbers.size()] = kNan;
        }
        std::vector<double> turned(numbers.rbegin(), numbers.rend()), negative;
        for (const double x : numbers) negative.push_back(100 - x);
        const Tensor line = cast(tensor({length}, numbers), dtype);
        const std::string what = cat(dtype, ' ', length, ' ', trial);
        EXPECT_EQ(*argmax(line).data<int64_t>(), place_of_largest(numbers)) << what;
        EXPECT_EQ(*argmin(line).data<int64_t>(), place_of_largest(negative)) << what;
        EXPECT_EQ(*argmax(flip(line)).data<int64_t>(), place_of_largest(turned)) << what;
        const Tensor pair = stack(std::vector{line, line}, 1);
        EXPECT_EQ(argmax(pair, 0).data<int64_t>()[1], place_of_largest(numbers)) << what;
        const Tensor column = select(pair, 1, 0);
        EXPECT_EQ(*argmax(column).data<int64_t>(), place_of_largest(numbers)) << what;
      }
    }
  }
}

TEST(Reduce, ComplexProductsOfRows) {
  for (const int64_t length : {1, 3, 4, 5, 50}) {
    std::vector<std::complex<double>> values;
    for (int i = 0; i < 2 * length; ++i) values.push_back(std::polar(1.0 + 0.01 * i, 0.3 * i));
    const Tensor x = from_values<std::complex<double>>(
        {2, length}, std::span<const std::complex<double>>(values));
    const Tensor product = prod(x, {1});
    for (int64_t line = 0; line < 2; ++line) {
      std::complex<long double> expected = 1;
      for (int64_t i = 0; i < length; ++i) {
        expected *= std::complex<long double>(values[static_cast<size_t>(line * length + i)]);
      }
      const auto found = std::complex<long double>(product.data<std::complex<double>>()[line]);
      EXPECT_LT(std::abs(found - expected), 1e-14L * std::abs(expected)) << length;
    }
  }
}

TEST(Reduce, WritesToStridedOutputs) {
  const Tensor x = ones({3, 4}, DType::kFloat64);
  Tensor wide = zeros({3, 2}, DType::kFloat64);
  const Tensor column = select(wide, 1, 1);
  sum(x, {1}, false, SumMode::kPlain, &column);
  EXPECT_EQ(wide.data<double>()[1], 4.0);
  EXPECT_EQ(wide.data<double>()[0], 0.0);
}

TEST(Reduce, RefusesWhatDoesNotFit) {
  const Tensor x = ones({3, 4}, DType::kFloat64);
  const Tensor wrong = empty({4}, DType::kFloat64), single = empty({3}, DType::kFloat32);
  const Tensor alias = select(x, 1, 0);
  EXPECT_THROW(sum(x, {2}), ShapeError);
  EXPECT_THROW(sum(x, {0, -2}), ShapeError);
  EXPECT_THROW(sum(x, {1}, false, SumMode::kPlain, &wrong), ShapeError);
  EXPECT_THROW(sum(x, {1}, false, SumMode::kPlain, &single), DTypeError);
  EXPECT_THROW(sum(x, {1}, false, SumMode::kPlain, &alias), ExecutionError);
  EXPECT_THROW(max(ones({2}, DType::kComplex64)), DTypeError);
  EXPECT_THROW(argmax(ones({2}, DType::kComplex64)), DTypeError);
  EXPECT_THROW(norm(x, std::nan("")), ExecutionError);
  EXPECT_THROW(parse_sum_mode("kahan"), ExecutionError);
}

TEST(Reduce, TrailingReductionsJoinAFusedScope) {
  const Tensor x = reshape(arange(0, 12, 1, DType::kFloat64), {3, 4});
  Tensor total, largest, columns;
  const auto reports = explain([&] {
    const Tensor y = add(multiply(x, x), 1.0);
    total = sum(y, {1});
    largest = max(y, {1}, true);
    columns = sum(y, {0});  // not trailing: runs by itself
  });
  EXPECT_EQ(total.data<double>()[1], 16 + 25 + 36 + 49 + 4);
  EXPECT_EQ(largest.data<double>()[2], 122.0);
  EXPECT_EQ(largest.shape(), (Shape{3, 1}));
  EXPECT_EQ(columns.data<double>()[3], 9 + 49 + 121 + 3);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].ops, (std::vector<std::string>{"multiply", "add", "sum", "max"}));
}

TEST(Reduce, EuclidsNormNeitherOverflowsNorUnderflows) {
  const Tensor x = from_values<double>({3, 2}, {3e200, 4e200, 3e-200, -4e-200, 0.0, 0.0});
  const Tensor lengths = norm(x, 2.0, {1});
  EXPECT_NEAR(lengths.data<double>()[0], 5e200, 1e185);
  EXPECT_NEAR(lengths.data<double>()[1], 5e-200, 1e-215);
  EXPECT_EQ(lengths.data<double>()[2], 0.0);
}

}  // namespace
}  // namespace cuop
