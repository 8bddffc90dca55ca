// Products of vectors at every instruction set that this machine runs: right, and the same bits.
#include <gtest/gtest.h>

#include <complex>
#include <random>
#include <vector>

#include "cuop/ops/blas/blas_kernels.h"
#include "tests/jit/levels.h"

namespace cuop::kernels {
namespace {

using Wide = std::complex<long double>;

template <class T>
std::vector<T> random_vector(int64_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<T> values;
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      values.push_back(static_cast<T>(normal(generator)));
    } else {
      using R = typename T::value_type;
      const auto real = static_cast<R>(normal(generator));
      values.emplace_back(real, static_cast<R>(normal(generator)));
    }
  }
  return values;
}

template <class T>
void expect_right(int64_t n, bool conjugate) {
  const std::vector<T> x = random_vector<T>(n, 1), y = random_vector<T>(n, 2);
  Wide wanted = 0;
  long double size = 1;
  for (size_t i = 0; i < x.size(); ++i) {
    const Wide a(x[i]), b(y[i]);
    wanted += (conjugate ? std::conj(a) : a) * b;
    size += std::abs(a) * std::abs(b);
  }
  std::complex<double> first;
  for (const isa::Level level : test::levels()) {
    const auto& table = isa::choose(
        level, []<class Level>(Level) -> const Level1Kernels& { return level1_kernels<Level>(); });
    const auto got = std::get<Level1<T>>(table).dot(n, x.data(), y.data(), conjugate);
    ASSERT_LE(std::abs(Wide(got) - wanted), 1e-15L * size) << n << ' ' << isa::name(level);
    if (level == isa::Level::kBaseline) first = got;
    ASSERT_EQ(got, first) << n << ' ' << isa::name(level);
  }
}

template <class T>
class Dot : public testing::Test {};
using Numbers = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(Dot, Numbers);

TYPED_TEST(Dot, HasTheSameBitsAtEveryLevel) {
  for (int64_t n = 0; n <= 200; ++n) expect_right<TypeParam>(n, n % 2 == 0);
  for (const int64_t n : {1000, 4095, 65536}) {
    expect_right<TypeParam>(n, false);
    expect_right<TypeParam>(n, true);
  }
}

}  // namespace
}  // namespace cuop::kernels
