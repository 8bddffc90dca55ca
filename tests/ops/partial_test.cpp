#include "cuop/ops/reduce/partial.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <random>

#include "cuop/core/error.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/reduce/reduce.h"

namespace cuop {
namespace {

/// Rows of wildly different size, so that a plain sum depends on the order.
Tensor ill_conditioned(int64_t rows, int64_t columns) {
  std::mt19937_64 random(11);
  std::uniform_int_distribution<int> exponent(-200, 200);
  std::normal_distribution<double> mantissa;
  const Tensor x = empty({rows, columns}, DType::kFloat64);
  for (int64_t i = 0; i < x.size(); ++i) {
    x.data<double>()[i] = std::ldexp(mantissa(random), exponent(random));
  }
  return x;
}

/// Folds `parts` uneven slices of rows, the last one empty, and merges them back to front.
Tensor by_parts(const PartialReduction& reduction, const Tensor& x, int64_t parts) {
  const int64_t rows = x.shape(0);
  Tensor total;
  for (int64_t i = parts; i >= 0; --i) {
    const int64_t begin = rows * i / parts, end = std::min(rows, rows * (i + 1) / parts);
    const Tensor states = reduction.fold(slice(x, 0, begin, end), {0});
    if (total.is_defined()) {
      reduction.merge(total, states);
    } else {
      total = states;
    }
  }
  return reduction.finish(total, rows);
}

TEST(PartialReduction, ExactPartsGiveTheBitsOfTheWhole) {
  const Tensor x = ill_conditioned(53, 9);
  for (const ReduceKind kind : {ReduceKind::kSum, ReduceKind::kMean}) {
    const PartialReduction reduction(kind, SumMode::kExact, x.dtype());
    const Tensor whole = kind == ReduceKind::kSum ? sum(x, {0}, false, SumMode::kExact)
                                                  : mean(x, {0}, false, SumMode::kExact);
    for (int64_t parts = 1; parts <= 7; ++parts) {
      const Tensor split = by_parts(reduction, x, parts);
      ASSERT_EQ(std::memcmp(split.data(), whole.data(), static_cast<size_t>(whole.nbytes())), 0)
          << name(kind) << " of " << parts << " parts";
    }
  }
}

TEST(PartialReduction, EveryKindEqualsTheWhole) {
  const Tensor x = cast(arange(-30, 33, 1, DType::kInt64), DType::kFloat64);
  const Tensor rows = reshape(x, {21, 3});
  const auto check = [&](ReduceKind kind, SumMode mode, const Tensor& whole) {
    const PartialReduction reduction(kind, mode, rows.dtype());
    const std::vector<int64_t> axes{0};
    for (const Tensor& found : {by_parts(reduction, rows, 4), reduction.reduce(rows, axes)}) {
      ASSERT_EQ(found.dtype(), whole.dtype());
      ASSERT_EQ(found.shape(), whole.shape());
      ASSERT_EQ(std::memcmp(found.data(), whole.data(), static_cast<size_t>(whole.nbytes())), 0)
          << name(kind);
    }
    EXPECT_EQ(reduction.reduce(rows, axes, true).shape(), (Shape{1, 3}));
  };
  check(ReduceKind::kSum, SumMode::kPlain, sum(rows, {0}));
  check(ReduceKind::kSum, SumMode::kCompensated, sum(rows, {0}, false, SumMode::kCompensated));
  check(ReduceKind::kMean, SumMode::kPlain, mean(rows, {0}));
  check(ReduceKind::kProd, SumMode::kPlain, prod(rows, {0}));
  check(ReduceKind::kMax, SumMode::kPlain, max(rows, {0}));
  check(ReduceKind::kMin, SumMode::kPlain, min(rows, {0}));
  check(ReduceKind::kAny, SumMode::kPlain, any(rows, {0}));
  check(ReduceKind::kAll, SumMode::kPlain, all(rows, {0}));
}

TEST(PartialReduction, ComplexPartsAreTwoRealSums) {
  using C = std::complex<float>;
  const Tensor x = from_values<C>({3}, {C(1, 1e8f), C(2, 1), C(3, -1e8f)});
  const PartialReduction reduction(ReduceKind::kSum, SumMode::kExact, x.dtype());
  const Tensor total = reduction.finish(reduction.fold(x), 3);
  EXPECT_EQ(*total.data<C>(), C(6, 1));
}

TEST(PartialReduction, EveryKindOfComplexNumbersEqualsTheWhole) {
  using C = std::complex<double>;
  const Tensor rows =
      from_values<C>({4, 2}, {C(1, 2), C(0), C(-3, 1), C(0), C(0, -5), C(0), C(2, 2), C(0, 7)});
  const auto check = [&](ReduceKind kind, const Tensor& whole) {
    const PartialReduction reduction(kind, SumMode::kPlain, rows.dtype());
    for (const Tensor& found : {by_parts(reduction, rows, 3), reduction.reduce(rows, {{0}})}) {
      ASSERT_EQ(found.dtype(), whole.dtype()) << name(kind);
      ASSERT_EQ(found.shape(), whole.shape()) << name(kind);
      for (int64_t i = 0; i < whole.size(); ++i) {
        if (is_bool(whole.dtype())) {
          EXPECT_EQ(found.data<bool>()[i], whole.data<bool>()[i]) << name(kind);
        } else if (is_complex(whole.dtype())) {
          EXPECT_LE(std::abs(found.data<C>()[i] - whole.data<C>()[i]), 1e-13) << name(kind);
        } else {
          EXPECT_NEAR(found.data<double>()[i], whole.data<double>()[i], 1e-13) << name(kind);
        }
      }
    }
  };
  check(ReduceKind::kSum, sum(rows, {0}));
  check(ReduceKind::kMean, mean(rows, {0}));
  check(ReduceKind::kProd, prod(rows, {0}));
  check(ReduceKind::kAny, any(rows, {0}));
  check(ReduceKind::kAll, all(rows, {0}));
  check(ReduceKind::kVar, var(rows, {0}));
  check(ReduceKind::kStd, stddev(rows, {0}));
}

TEST(PartialReduction, MergesOnlyWhatBelongsTogether) {
  const PartialReduction reduction(ReduceKind::kMax, SumMode::kPlain, DType::kFloat32);
  const Tensor states = reduction.fold(ones({4, 2}), {0});
  EXPECT_EQ(states.shape(), (Shape{2, 4}));
  EXPECT_THROW(reduction.merge(states, reduction.fold(ones({4, 3}), {0})), ShapeError);
  EXPECT_THROW(reduction.finish(ones({4}), 1), ShapeError);
  EXPECT_THROW(reduction.finish(reduction.fold(empty({0, 2}), {0}), 0), ShapeError);
  EXPECT_THROW(reduction.fold(ones({2}, DType::kFloat64)), DTypeError);
  EXPECT_THROW(PartialReduction(ReduceKind::kMax, SumMode::kPlain, DType::kComplex64), DTypeError);
  EXPECT_THROW(PartialReduction(ReduceKind::kNorm, SumMode::kPlain, DType::kFloat32),
               ExecutionError);
}

/// Bytes received from elsewhere may lie anywhere; what is merged into may not.
TEST(PartialReduction, TakesBytesFromAnyPlace) {
  const PartialReduction reduction(ReduceKind::kSum, SumMode::kExact, DType::kFloat64);
  const Tensor mine = reduction.fold(ones({3}, DType::kFloat64));
  const Tensor buffer = zeros({reduction.state_bytes() + 3}, DType::kUInt8);
  const Tensor there = slice(buffer, 0, 3, {});
  copy_into(there, mine);
  reduction.merge(mine, there);
  EXPECT_EQ(*reduction.finish(mine, 6).data<double>(), 6.0);
  EXPECT_THROW(reduction.merge(there, mine), ExecutionError);
}

}  // namespace
}  // namespace cuop
