#include "cuop/ops/fft/twiddle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/fft/root_table.h"
#include "cuop/ops/index/view.h"

namespace cuop::spectral {
namespace {

using Exact = std::complex<long double>;

Exact exact_root(int64_t m, int64_t n) {
  const long double angle = 2 * std::numbers::pi_v<long double> * static_cast<long double>(m) /
                            static_cast<long double>(n);
  return {std::cos(angle), std::sin(angle)};
}

TEST(Twiddle, RootsAreRightToTheLastPlace) {
  for (const int64_t n : {1, 2, 3, 4, 7, 8, 360, 1 << 20, 999983}) {
    for (int64_t i = 0; i < 400; ++i) {
      const int64_t m = n < 400 ? i % n : i * (n / 400) + i;
      const Exact off = Exact(root_of_unity(m, n)) - exact_root(m, n);
      EXPECT_LT(std::abs(off), 2.3e-16) << m << " of " << n;
    }
  }
  EXPECT_EQ(root_of_unity(1, 4), std::complex<double>(0, 1));
  EXPECT_EQ(root_of_unity(int64_t{3} << 56, int64_t{1} << 58), std::complex<double>(0, -1));
}

TEST(Twiddle, BlocksOfAnyLayoutAreMultipliedInPlace) {
  const int64_t n = 7000;
  for (const DType dtype : {DType::kComplex64, DType::kComplex128}) {
    for (const bool is_inverse : {false, true}) {
      for (int order = 0; order < 6; ++order) {
        constexpr int64_t kOrders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                          {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
        const Tensor block = permute(full({3, 4, 5}, 1.0, dtype), kOrders[order]);
        const Twiddles twiddles{n, 0, 60, 2, 90, is_inverse};
        multiply_by_twiddles(block, twiddles);
        const Tensor given = contiguous(cast(block, DType::kComplex128));
        const auto* value = given.data<std::complex<double>>();
        for (int64_t i = 0; i < block.shape(0); ++i) {
          for (int64_t j = 0; j < block.shape(1); ++j) {
            for (int64_t k = 0; k < block.shape(2); ++k) {
              const Exact root = exact_root((60 + i) * (90 + k), n);
              const Exact expected = is_inverse ? root : std::conj(root);
              EXPECT_LT(std::abs(Exact(*value++) - expected),
                        dtype == DType::kComplex64 ? 6e-8 : 6e-16)
                  << cat(dtype, ' ', order, ' ', i, ' ', j, ' ', k);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace cuop::spectral
