#include "cuop/ops/fft/chirp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <random>

#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/fft/chirp_arguments.cuh"
#include "cuop/ops/index/view.h"

namespace cuop::spectral {
namespace {

using Exact = std::complex<long double>;

int64_t exact_square(int64_t j, int64_t modulus) {
  return static_cast<int64_t>(static_cast<__int128>(j) * j % modulus);
}

/// exp(-i pi j^2 / n).
Exact exact_chirp(int64_t j, int64_t n) {
  const long double angle = std::numbers::pi_v<long double> *
                            static_cast<long double>(exact_square(j, 2 * n)) /
                            static_cast<long double>(n);
  return {std::cos(angle), -std::sin(angle)};
}

TEST(Chirp, SquaresAreExactModuloAnyNumber) {
  std::mt19937_64 random(1);
  for (const int bits : {3, 10, 31, 32, 40, 48}) {
    for (int i = 0; i < 2000; ++i) {
      const auto n = static_cast<int64_t>(random() >> (64 - bits)) + 1;
      const auto j = static_cast<int64_t>(random() % static_cast<uint64_t>(4 * n));
      ASSERT_EQ(jit::square_modulo(j, 2 * n), exact_square(j, 2 * n)) << j << " of " << n;
    }
    // Where the rest is next to nothing and next to all.
    const int64_t n = int64_t{1} << bits;
    for (const int64_t j : {n - 1, n, n + 1, 2 * n - 1, 4 * n - 1}) {
      ASSERT_EQ(jit::square_modulo(j, 2 * n), exact_square(j, 2 * n)) << j << " of " << n;
    }
  }
}

TEST(Chirp, BlocksOfAnyLayoutAreMultipliedInPlace) {
  for (const DType dtype : {DType::kComplex64, DType::kComplex128}) {
    for (const int64_t n : {int64_t{23}, (int64_t{1} << 33) - 9}) {
      for (int form = 0; form < 8; ++form) {
        Tensor block = full({37, 29}, 1.0, dtype);
        if (form & 1) block = transpose(block);
        Chirp chirp;
        chirp.n = n;
        chirp.first = form & 2 ? n - 3 : 5;
        chirp.row_step =
            form & 2 ? block.shape(1) : 71;  // rows that follow each other are one line
        chirp.first = n < 100 ? 0 : chirp.first;
        chirp.row_step = n < 100 ? 1 : chirp.row_step;
        chirp.is_conjugate = form & 4;
        chirp.scale = 0.75;
        multiply_by_chirp(block, chirp);
        const Tensor given = contiguous(cast(block, DType::kComplex128));
        const auto* value = given.data<std::complex<double>>();
        for (int64_t r = 0; r < block.shape(0); ++r) {
          for (int64_t c = 0; c < block.shape(1); ++c) {
            const Exact root = exact_chirp(chirp.first + r * chirp.row_step + c, n);
            const Exact expected = 0.75L * (chirp.is_conjugate ? std::conj(root) : root);
            ASSERT_LT(std::abs(Exact(*value++) - expected),
                      dtype == DType::kComplex64 ? 6e-8 : 6e-16)
                << cat(dtype, ' ', n, ' ', form, ' ', r, ' ', c);
          }
        }
      }
    }
  }
}

TEST(Chirp, WhatIsBehindTheTurnCountsBackwards) {
  const Tensor line = ones({1, 20}, DType::kComplex128);
  Chirp chirp;
  chirp.n = 11;
  chirp.turn = 9;
  chirp.length = 20;
  multiply_by_chirp(line, chirp);
  const auto* value = line.data<std::complex<double>>();
  for (int64_t j = 0; j < 20; ++j) {
    EXPECT_LT(std::abs(Exact(value[j]) - exact_chirp(j < 9 ? j : 20 - j, 11)), 6e-16) << j;
  }
}

TEST(Chirp, TheEndsOfHalfASpectrumAreReal) {
  for (const int64_t n : {12, 13}) {
    for (const bool is_before : {true, false}) {
      const Tensor line = full({1, 7}, std::complex<double>(2, 1), DType::kComplex128);
      Chirp chirp;
      chirp.n = n;
      (is_before ? chirp.ends_are_real : chirp.ends_become_real) = true;
      chirp.end_scale = 0.5;
      multiply_by_chirp(line, chirp);
      const auto* value = line.data<std::complex<double>>();
      for (int64_t j = 0; j < 7; ++j) {
        const bool is_end = j == 0 || 2 * j == n;
        Exact expected = (is_end && is_before ? Exact(2, 0) : Exact(2, 1)) * exact_chirp(j, n);
        if (is_end) expected *= 0.5L;
        if (is_end && !is_before) expected.imag(0);
        EXPECT_LT(std::abs(Exact(value[j]) - expected), 2e-15) << j << " of " << n;
      }
    }
  }
}

}  // namespace
}  // namespace cuop::spectral
