// Partial reductions on a GPU beside the CPU's, and together with them: states are the same bytes.
#include "cuop/ops/reduce/partial.h"

#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/reduce/reduce_arguments.cuh"
#include "tests/gpu/compare.h"
#include "tests/gpu/gpu_test.h"

namespace cuop {
namespace {

using test::expect_same;
using test::random_tensor;

class GpuPartialReduction : public GpuTest {};

constexpr ReduceKind kKinds[] = {ReduceKind::kSum, ReduceKind::kMean, ReduceKind::kProd,
                                 ReduceKind::kMax, ReduceKind::kMin,  ReduceKind::kAny,
                                 ReduceKind::kAll, ReduceKind::kVar,  ReduceKind::kStd};

bool is_defined_for(ReduceKind kind, DType dtype) {
  const bool has_order = kind == ReduceKind::kMax || kind == ReduceKind::kMin;
  return !is_complex(dtype) || !has_order;
}

/// 0 where the order of operations cannot matter, or is the CPU's.
double ulps_of(ReduceKind kind, SumMode mode, DType dtype) {
  const bool is_sum = kind == ReduceKind::kSum || kind == ReduceKind::kMean;
  const bool is_ordered = kind == ReduceKind::kMax || kind == ReduceKind::kMin ||
                          kind == ReduceKind::kAny || kind == ReduceKind::kAll;
  if (is_ordered || (is_sum && mode != SumMode::kPlain)) return 0.0;
  const bool is_whole = is_integer(dtype) || is_bool(dtype);
  return is_whole && (kind == ReduceKind::kSum || kind == ReduceKind::kProd) ? 0.0 : 2000.0;
}

/// Uneven parts along axis 1, an empty one among them, merged in order. Each is folded where
/// `place(i)` says and moved to `device`, where all are merged and finished.
template <class Place>
Tensor by_parts(const PartialReduction& reduction, const Tensor& x, Device device, Place place) {
  const int64_t cuts[] = {0, 1, 1, x.shape(1) / 3, x.shape(1)};
  Tensor total;
  for (int i = 0; i < 4; ++i) {
    const Tensor part = slice(to_device(x, place(i)), 1, cuts[i], cuts[i + 1]);
    const Tensor states = to_device(reduction.fold(part, {1}), device);
    if (i == 0) {
      total = states;
    } else {
      reduction.merge(total, states);
    }
  }
  const Tensor kept = reduction.finish(total, x.shape(1));
  expect_same(reduction.finish(total, x.shape(1)), kept, 0.0, "the same states once more");
  expect_same(reduction.finish(std::move(total), x.shape(1)), kept, 0.0,
              "states that are given up");
  return kept;
}

TEST_F(GpuPartialReduction, EveryKindGivesTheCpus) {
  for (const DType dtype : {DType::kBool, DType::kInt8, DType::kUInt64, DType::kFloat16,
                            DType::kFloat32, DType::kFloat64, DType::kComplex64}) {
    const Tensor x = random_tensor({3, 21, 5}, dtype, 1);
    for (const ReduceKind kind : kKinds) {
      if (!is_defined_for(kind, dtype)) continue;
      for (const SumMode mode : {SumMode::kPlain, SumMode::kCompensated, SumMode::kExact}) {
        const bool is_sum = kind == ReduceKind::kSum || kind == ReduceKind::kMean;
        if (mode != SumMode::kPlain && !is_sum) continue;
        const PartialReduction reduction(kind, mode, dtype);
        const Tensor wanted = by_parts(reduction, x, kCpu, [](int) { return kCpu; });
        const std::string what = cat(name(kind), ' ', name(mode), ' ', dtype);
        const double ulps = ulps_of(kind, mode, dtype);
        const Tensor given = by_parts(reduction, x, kGpu, [](int) { return kGpu; });
        EXPECT_EQ(given.device(), kGpu);
        expect_same(given, wanted, ulps, what, 1.0);
        const auto mixed = [](int part) { return part % 2 == 0 ? kGpu : kCpu; };
        expect_same(by_parts(reduction, x, kCpu, mixed), wanted, ulps, what + " of both", 1.0);
      }
    }
  }
}

/// Axes kept in another order in memory than in the shape, rows that are folded side by side, and
/// parts that blocks share.
TEST_F(GpuPartialReduction, StatesLieInTheOrderOfTheKeptAxes) {
  for (const Shape& shape : {Shape{4, 7, 9}, Shape{2, 700, 3}, Shape{3, 70001, 2}}) {
    const Tensor host = random_tensor(shape, DType::kFloat32, 3), device = to_device(host, kGpu);
    const Tensor views[][2] = {{host, device},
                               {swap_axes(host, 0, 2), swap_axes(device, 0, 2)},
                               {flip(host), flip(device)}};
    for (const SumMode mode : {SumMode::kCompensated, SumMode::kExact}) {
      const PartialReduction reduction(ReduceKind::kSum, mode, DType::kFloat32);
      for (const auto& view : views) {
        const Tensor states = reduction.fold(view[1], {1});
        ASSERT_EQ(states.shape(), reduction.fold(view[0], {1}).shape());
        expect_same(reduction.finish(states, shape[1]),
                    reduction.finish(reduction.fold(view[0], {1}), shape[1]), 0.0,
                    cat(name(mode), ' ', shape));
      }
    }
  }
}

/// More parts of a row, and of columns, than one block merges.
TEST_F(GpuPartialReduction, GroupsOfPartsAreMergedAsOneTree) {
  const int64_t row = 65536 * (int64_t{jit::kRowPartsTogether} + 3) - 5;
  const int64_t rows = 2048 * (int64_t{jit::kColumnPartsTogether} + 5) - 7;
  for (const Shape& shape : {Shape{row, 1}, Shape{rows, 40}}) {
    const Tensor x = random_tensor(shape, DType::kFloat32, 5);
    for (const SumMode mode : {SumMode::kCompensated, SumMode::kExact}) {
      const PartialReduction reduction(ReduceKind::kSum, mode, DType::kFloat32);
      expect_same(reduction.reduce(to_device(x, kGpu), {0}), reduction.reduce(x, {0}), 0.0,
                  cat(name(mode), ' ', shape));
    }
  }
}

/// Numbers of all sizes, of both signs, whose sums are 0, subnormal, too large, or none.
TEST_F(GpuPartialReduction, ExactSumsOfNumbersAtTheEnds) {
  constexpr double kLargest = std::numeric_limits<double>::max(), kInf = HUGE_VAL;
  constexpr double kLeast = std::numeric_limits<double>::denorm_min();
  const double rows[][4] = {{kLargest, kLargest, -kLargest, 1.0},
                            {kLargest, kLargest, 0.0, 0.0},
                            {-kLargest, -kLargest, kLeast, 0.0},
                            {kLeast, -kLeast, 0.0, -0.0},
                            {kLeast, kLeast, kLeast, 0.0},
                            {-kLeast, 1.0, -1.0, 0.0},
                            {1.0, 0x1p-53, kLeast, 0.0},
                            {-1.0, -0x1p-53, 0.0, 0.0},
                            {1.0, -0x1p-54, -kLeast, 0.0},
                            {kInf, 1.0, -kLargest, 0.0},
                            {kInf, -kInf, 0.0, 0.0},
                            {-kInf, 0.0, 1.0, 1.0},
                            {std::nan(""), 1.0, 0.0, 0.0},
                            {-3.0, -0x1p-1000, 0.0, 0.0}};
  const auto count = static_cast<int64_t>(std::size(rows));
  const Tensor x = empty({count, 4}, DType::kFloat64);
  std::memcpy(x.data(), rows, sizeof rows);
  const Tensor there = to_device(x, kGpu);
  for (const ReduceKind kind : {ReduceKind::kSum, ReduceKind::kMean}) {
    const PartialReduction reduction(kind, SumMode::kExact, DType::kFloat64);
    const Tensor wanted = reduction.reduce(x, {1});
    expect_same(reduction.reduce(there, {1}), wanted, 0.0, cat(name(kind)));
    expect_same(by_parts(reduction, there, kGpu, [](int) { return kGpu; }), wanted, 0.0,
                cat(name(kind), " by parts"));
    expect_same(reduction.finish(to_device(reduction.fold(there, {1}), kCpu), 4), wanted, 0.0,
                cat(name(kind), ", finished by the CPU"));
  }
}

/// Beside 1e8 a spread of 1 has nine digits in a double; the variance has them all.
TEST_F(GpuPartialReduction, VariancesKeepTheDigitsBesideALargeMean) {
  const int64_t n = 3001;
  const Tensor noise = random_tensor({1, n}, DType::kFloat64, 6), x = add(noise, 1e8);
  long double mean = 0, squares = 0;
  const double* const values = x.data<double>();
  for (int64_t i = 0; i < n; ++i) mean += values[i];
  mean /= static_cast<long double>(n);
  for (int64_t i = 0; i < n; ++i) {
    squares += (values[i] - mean) * (values[i] - mean);
  }
  const double wanted = static_cast<double>(squares / static_cast<long double>(n));
  const PartialReduction reduction(ReduceKind::kVar, SumMode::kPlain, DType::kFloat64);
  const Tensor given = by_parts(reduction, x, kGpu, [](int) { return kGpu; });
  EXPECT_NEAR(to_device(given, kCpu).data<double>()[0] / wanted, 1.0, 1e-14);
}

TEST_F(GpuPartialReduction, NoElementIsTheIdentity) {
  for (const ReduceKind kind : kKinds) {
    const PartialReduction reduction(kind, SumMode::kExact, DType::kFloat64);
    const Tensor none = empty({2, 0, 3}, DType::kFloat64);
    const Tensor given = to_device(reduction.fold(to_device(none, kGpu), {1}), kCpu);
    const Tensor wanted = reduction.fold(none, {1});
    EXPECT_EQ(std::memcmp(given.data(), wanted.data(), static_cast<size_t>(wanted.nbytes())), 0)
        << name(kind);
    EXPECT_EQ(reduction.fold(empty({0, 4}, DType::kFloat64, kGpu), {1}).shape(0), 0);
  }
}

TEST_F(GpuPartialReduction, StatesOfTwoDevicesAreRefused) {
  const PartialReduction reduction(ReduceKind::kSum, SumMode::kExact, DType::kFloat32);
  const Tensor host = reduction.fold(ones({4})),
               device = reduction.fold(ones({4}, DType::kFloat32, kGpu));
  EXPECT_THROW(reduction.merge(host, device), DeviceError);
  const Tensor out = empty({}, DType::kFloat32);
  EXPECT_THROW(reduction.finish(device, 4, &out), DeviceError);
}

}  // namespace
}  // namespace cuop
