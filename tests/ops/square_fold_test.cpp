// Sums of squares of rows and of columns at every instruction set that this machine runs.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "cuop/ops/reduce/fold.h"
#include "tests/jit/levels.h"

namespace cuop {
namespace {

template <class T>
class SquareFold : public testing::Test {
 protected:
  static const Fold& fold(isa::Level level) {
    return *isa::choose(level, []<class Level>(Level) { return square_fold<Level>(dtype_of<T>); });
  }
  static std::vector<T> numbers(int64_t n) {
    std::mt19937 generator(static_cast<unsigned>(n));
    std::normal_distribution<double> normal;
    std::vector<T> values(static_cast<size_t>(n));
    for (T& value : values) value = static_cast<T>(normal(generator));
    return values;
  }
  /// `count` squares, `step` apart.
  static long double squares(const T* data, int64_t count, int64_t step) {
    long double sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<long double>(data[i * step]);
      sum += value * value;
    }
    return sum;
  }
  static void expect_near(double got, long double wanted) {
    ASSERT_LE(std::abs(got - wanted), 0x1p-50L * wanted);
  }
};
using Numbers = testing::Types<float, double>;
TYPED_TEST_SUITE(SquareFold, Numbers);

TYPED_TEST(SquareFold, OfRows) {
  for (const int64_t n : {1, 7, 31, 32, 33, 511, 512, 513, 545, 1000, 16384}) {
    const int64_t stride = n + 3, count = 4;
    const std::vector<TypeParam> x = this->numbers(count * stride);
    for (const isa::Level level : test::levels()) {
      std::vector<double> states(static_cast<size_t>(count));
      this->fold(level).init(states.data(), count);
      this->fold(level).rows(states.data(), x.data(), count, stride, n);
      for (int64_t i = 0; i < count; ++i) {
        this->expect_near(states[static_cast<size_t>(i)],
                          this->squares(x.data() + i * stride, n, 1));
      }
    }
  }
}

TYPED_TEST(SquareFold, OfColumns) {
  constexpr int64_t kRows = 29;
  for (const int64_t columns : {1, 2, 9, 100}) {
    const std::vector<TypeParam> x = this->numbers(kRows * columns);
    std::vector<const void*> rows;
    for (int64_t r = 0; r < kRows; ++r) rows.push_back(x.data() + r * columns);
    for (const isa::Level level : test::levels()) {
      std::vector<double> states(static_cast<size_t>(columns)), half = states;
      const Fold& fold = this->fold(level);
      fold.init(states.data(), columns);
      fold.init(half.data(), columns);
      fold.columns(states.data(), rows.data(), 13, columns);
      fold.columns(half.data(), rows.data() + 13, kRows - 13, columns);
      fold.merge(states.data(), half.data(), columns);
      for (int64_t j = 0; j < columns; ++j) {
        this->expect_near(states[static_cast<size_t>(j)],
                          this->squares(x.data() + j, kRows, columns));
      }
    }
  }
}

TEST(SquareFoldTypes, AreThoseThatLieAsTheyAreRead) {
  for (const isa::Level level : test::levels()) {
    const auto fold = [&](DType dtype) {
      return isa::choose(level, [&]<class Level>(Level) { return square_fold<Level>(dtype); });
    };
    EXPECT_NE(fold(DType::kFloat32), nullptr);
    EXPECT_NE(fold(DType::kFloat64), nullptr);
    EXPECT_EQ(fold(DType::kFloat16), nullptr);
    EXPECT_EQ(fold(DType::kInt64), nullptr);
  }
}

}  // namespace
}  // namespace cuop
