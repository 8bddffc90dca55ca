// Reductions on a GPU beside the CPU's.
#include "cuop/ops/reduce/reduce.h"

#include "cuop/core/error.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/matmul.h"
#include "tests/error_of.h"
#include "tests/gpu/compare.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/guarded.h"

namespace cuop {
namespace {

using test::error_of;
using test::expect_same;
using test::Guarded;
using test::random_tensor;

class GpuReduce : public GpuTest {};

const std::vector<std::vector<int64_t>> kAxes = {{}, {0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}};
const Shape kReducedShapes[] = {
    {3, 5, 7}, {1, 40, 1000}, {130, 3, 64}, {2, 2, 70001}, {4099, 1, 3}};

TEST_F(GpuReduce, SumsOfEveryDtypeOverAllAxes) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    for (const Shape& shape : kReducedShapes) {
      const Tensor host = random_tensor(shape, dtype, i);
      const Tensor device = to_device(host, kGpu);
      for (const auto& axes : kAxes) {
        const std::string what = cat(dtype, ' ', shape, " axes ", join(axes));
        // Of terms of both signs: some rounding of the sum of their sizes.
        const double ulps = is_integer(dtype) || is_bool(dtype) ? 0.0 : 2000.0;
        expect_same(sum(device, axes), sum(host, axes), ulps, "sum " + what);
        expect_same(mean(device, axes, true), mean(host, axes, true), 2000.0, "mean " + what);
        expect_same(any(device, axes), any(host, axes), 0.0, "any " + what);
        expect_same(all(device, axes), all(host, axes), 0.0, "all " + what);
      }
    }
  }
}

TEST_F(GpuReduce, PositiveSumsAreAccurate) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const Shape& shape : kReducedShapes) {
      const Tensor host = abs(random_tensor(shape, dtype, 3));
      const Tensor device = to_device(host, kGpu);
      for (const auto& axes : kAxes) {
        expect_same(sum(device, axes), sum(host, axes), 16.0, cat(dtype, ' ', shape, join(axes)));
        expect_same(norm(device, 2.0, axes), norm(host, 2.0, axes), 16.0, "norm");
      }
    }
  }
}

TEST_F(GpuReduce, ExtremesAndTheirPlaces) {
  for (const DType dtype : {DType::kBool, DType::kInt8, DType::kInt64, DType::kUInt16,
                            DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    for (const Shape& shape : kReducedShapes) {
      const Tensor host = random_tensor(shape, dtype, 5);
      const Tensor device = to_device(host, kGpu);
      for (const auto& axes : kAxes) {
        const std::string what = cat(dtype, ' ', shape, " axes ", join(axes));
        expect_same(max(device, axes), max(host, axes), 0.0, "max " + what);
        expect_same(min(device, axes), min(host, axes), 0.0, "min " + what);
      }
      for (const int64_t axis : {0, 1, 2}) {
        const std::string what = cat(dtype, ' ', shape, " axis ", axis);
        expect_same(argmax(device, axis), argmax(host, axis), 0.0, "argmax " + what);
        expect_same(argmin(device, axis, true), argmin(host, axis, true), 0.0, "argmin " + what);
      }
      expect_same(argmax(device), argmax(host), 0.0, cat("argmax ", dtype, shape));
    }
  }
}

TEST_F(GpuReduce, TheFirstNaNWins) {
  const Tensor host = random_tensor({1 << 20}, DType::kFloat32, 1);
  for (const int64_t place : {int64_t{0}, int64_t{4097}, int64_t{999999}}) {
    host.data<float>()[place] = NAN;
    host.data<float>()[(1 << 20) - 1] = NAN;
    const Tensor device = to_device(host, kGpu);
    expect_same(argmax(device), argmax(host), 0.0, "argmax");
    expect_same(argmin(device), argmin(host), 0.0, "argmin");
    EXPECT_TRUE(std::isnan(to_device(max(device), kCpu).data<float>()[0]));
    EXPECT_TRUE(std::isnan(to_device(sum(device), kCpu).data<float>()[0]));
    host.data<float>()[place] = 0;
  }
}

TEST_F(GpuReduce, VariancesNormsAndProducts) {
  for (const DType dtype : {DType::kInt32, DType::kFloat16, DType::kFloat32, DType::kFloat64,
                            DType::kComplex64, DType::kComplex128}) {
    const Tensor host = random_tensor({40, 300}, dtype, 6);
    const Tensor device = to_device(host, kGpu);
    for (const auto& axes : std::vector<std::vector<int64_t>>{{}, {0}, {1}}) {
      expect_same(var(device, axes, 1.0), var(host, axes, 1.0), 16.0, cat("var ", dtype));
      expect_same(stddev(device, axes), stddev(host, axes), 16.0, cat("std ", dtype));
      for (const double order : {0.0, 1.0, 2.0, 3.0, HUGE_VAL, -HUGE_VAL}) {
        expect_same(norm(device, order, axes), norm(host, order, axes), 32.0,
                    cat("norm ", order, ' ', dtype));
      }
    }
    const Tensor few = random_tensor({3, 5}, dtype, 8);
    expect_same(prod(to_device(few, kGpu), {1}), prod(few, {1}), 64.0, cat("prod ", dtype));
  }
  const Tensor large = full({1000}, 1e300, DType::kFloat64, kGpu);
  EXPECT_NEAR(to_device(norm(large), kCpu).data<double>()[0], 1e300 * std::sqrt(1000.0), 1e289);
  expect_same(norm(zeros({100}, DType::kFloat64, kGpu)), zeros({}, DType::kFloat64), 0.0, "zero");
}

TEST_F(GpuReduce, VariancesKeepTheirDigitsBesideALargeOffset) {
  for (const double offset : {1e8, 1e15}) {
    const Tensor host = add(random_tensor({70, 1100}, DType::kFloat64, 4), offset);
    const Tensor device = to_device(host, kGpu);
    for (const auto& axes : std::vector<std::vector<int64_t>>{{}, {0}, {1}}) {
      expect_same(var(device, axes), var(host, axes), 32.0, cat("var beside ", offset));
    }
    const Tensor every = slice(device, 1, 0, 367, 3);
    expect_same(var(every, {1}), var(slice(host, 1, 0, 367, 3), {1}), 32.0, "var of a view");
  }
  const Tensor constant = full({3, 5000}, 0.1, DType::kFloat32, kGpu);
  for (const auto& axes : std::vector<std::vector<int64_t>>{{}, {0}, {1}}) {
    const Tensor spread = var(constant, axes);
    expect_same(spread, zeros(spread.shape()), 0.0, "of what is the same");
  }
}

TEST_F(GpuReduce, ExactSumsOfIntegersFitOrAreRefused) {
  for (const DType dtype : {DType::kInt64, DType::kUInt64}) {
    const Tensor host = divide(cast(random_tensor({9, 700}, DType::kInt32, 5), DType::kFloat64), 4);
    const Tensor x = cast(abs(host), dtype), there = to_device(x, kGpu);
    for (const auto& axes : std::vector<std::vector<int64_t>>{{}, {0}, {1}}) {
      expect_same(sum(there, axes, false, SumMode::kExact), sum(x, axes), 0.0, cat(dtype));
    }
    const Tensor large = full({2, 4}, int64_t{1} << 62, dtype, kGpu);
    const std::string error =
        error_of<OverflowError>([&] { sum(large, {}, false, SumMode::kExact); });
    EXPECT_NE(error.find("the exact sum 36893488147419103232"), std::string::npos) << error;
  }
}

TEST_F(GpuReduce, SumsOfNegativeZerosAreZeros) {
  const Tensor x = full({3, 40}, -0.0, DType::kFloat32, kGpu);
  for (const SumMode mode : {SumMode::kPlain, SumMode::kCompensated, SumMode::kExact}) {
    const Tensor total = to_device(sum(x, {1}, false, mode), kCpu);
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(std::signbit(total.data<float>()[i])) << name(mode);
  }
}

TEST_F(GpuReduce, ViewsAndOutputs) {
  const Tensor host = random_tensor({48, 33, 20}, DType::kFloat32, 2);
  const Tensor device = to_device(host, kGpu);
  const int64_t order[] = {2, 0, 1};
  for (const auto& axes : kAxes) {
    expect_same(max(permute(device, order), axes), max(permute(host, order), axes), 0.0, "view");
  }
  const Tensor whole = full({48, 3}, 9, DType::kFloat32, kGpu), expected = full({48, 3}, 9);
  const Tensor column = select(whole, 1, 1), wanted = select(expected, 1, 1);
  max(device, {1, 2}, false, &column);
  max(host, {1, 2}, false, &wanted);
  expect_same(whole, expected, 0.0, "a column as the output");
}

TEST_F(GpuReduce, ColumnsOfSeveralElementsAThread) {
  for (const DType dtype :
       {DType::kUInt8, DType::kFloat16, DType::kFloat32, DType::kInt64, DType::kComplex128}) {
    const Tensor host = random_tensor({70, 3, 264}, dtype, 7), device = to_device(host, kGpu);
    const auto views = [](const Tensor& x) {  // whole, one element aside, every second, both ways
      return std::vector<Tensor>{x, slice(x, 2, 1, 257), slice(x, 2, 0, 264, 2), flip(x)};
    };
    const auto hosts = views(host), devices = views(device);
    const double ulps = is_integer(dtype) ? 0.0 : 2000.0;
    for (size_t k = 0; k < hosts.size(); ++k) {
      const std::string what = cat(dtype, " view ", k);
      for (const std::vector<int64_t>& axes : {std::vector<int64_t>{0}, {0, 1}}) {
        expect_same(sum(devices[k], axes), sum(hosts[k], axes), ulps, "sum " + what);
        expect_same(mean(devices[k], axes), mean(hosts[k], axes), 2000.0, "mean " + what);
      }
      if (is_complex(dtype)) continue;
      expect_same(max(devices[k], {0}), max(hosts[k], {0}), 0.0, "max " + what);
      expect_same(argmin(devices[k], 0), argmin(hosts[k], 0), 0.0, "argmin " + what);
    }
  }
  // Rows that blocks share, into an output with gaps.
  const Tensor host = random_tensor({5000, 128}, DType::kFloat32, 8);
  const Tensor whole = zeros({128, 2}, DType::kFloat32, kGpu), gaps = select(whole, 1, 1);
  sum(to_device(host, kGpu), {0}, false, SumMode::kPlain, &gaps);
  expect_same(gaps, sum(host, {0}), 2000.0, "with gaps");
  expect_same(select(whole, 1, 0), zeros({128}), 0.0, "the gaps");
}

TEST_F(GpuReduce, ManyShortRowsAThreadEach) {
  for (const DType dtype :
       {DType::kInt8, DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kComplex64}) {
    for (const int64_t length : {3, 7, 24, 45}) {
      const Tensor host = random_tensor({33000, length}, dtype, 9), device = to_device(host, kGpu);
      // Whole, every second element, in the other order, along the other axis.
      const auto views = [&](const Tensor& x) {
        return std::vector<Tensor>{x, slice(x, 1, 0, length, 2), flip(x), transpose(x)};
      };
      const auto hosts = views(host), devices = views(device);
      const double ulps = is_integer(dtype) ? 0.0 : 2000.0;
      for (size_t k = 0; k < hosts.size(); ++k) {
        const std::string what = cat(dtype, " of ", length, ", view ", k);
        const int64_t axis = k == 3 ? 0 : 1;
        const auto& x = devices[k];
        expect_same(sum(x, {axis}), sum(hosts[k], {axis}), ulps, "sum " + what);
        if (is_complex(dtype) || length == 45) continue;
        expect_same(argmax(x, axis), argmax(hosts[k], axis), 0.0, "argmax " + what);
        if (is_floating(dtype))
          expect_same(var(x, {axis}), var(hosts[k], {axis}), 64.0, "var " + what);
      }
    }
  }
}

TEST_F(GpuReduce, RowsThatBeginAtAnyAddress) {
  for (const DType dtype : {DType::kBool, DType::kInt8, DType::kUInt16, DType::kFloat16,
                            DType::kBFloat16, DType::kInt32, DType::kFloat32}) {
    for (const Shape& shape :
         {Shape{1, 300001}, {3, 70001}, {9, 4099}, {37, 1023}, {70, 129}, {2, 3, 257}}) {
      const Tensor host = random_tensor(shape, dtype, 9), device = to_device(host, kGpu);
      for (int64_t first = 0; first < 4; ++first) {
        const auto part = [&](const Tensor& x) {
          return slice(x, -1, first, x.shape(x.ndim() - 1) - first / 2);
        };
        const Tensor x = part(device), expected = part(host);
        const std::string what = cat(dtype, ' ', shape, " from ", first);
        const double ulps = is_floating(dtype) ? 2000.0 : 0.0;
        expect_same(sum(x, {-1}), sum(expected, {-1}), ulps, "sum " + what);
        expect_same(mean(x, {-1}), mean(expected, {-1}), 2000.0, "mean " + what);
        expect_same(max(x, {-1}), max(expected, {-1}), 0.0, "max " + what);
        expect_same(argmax(x, -1), argmax(expected, -1), 0.0, "argmax " + what);
        expect_same(argmin(x, -1), argmin(expected, -1), 0.0, "argmin " + what);
        if (!is_floating(dtype)) continue;
        expect_same(var(x, {-1}), var(expected, {-1}), 64.0, "var " + what);
        const Tensor factors = part(to_device(host, kGpu)), ours = part(host);
        expect_same(vecdot(x, factors), vecdot(expected, ours), 2000.0, "vecdot " + what);
      }
    }
  }
}

TEST_F(GpuReduce, ManyColumnsAThreadEach) {
  // As many columns as are 2^17 accesses of 16 bytes, or of fewer sums, and a few more; then fewer,
  // which teams share.
  for (const auto& [dtype, shape] :
       std::vector<std::pair<DType, Shape>>{{DType::kInt8, {3, 2100000}},
                                            {DType::kFloat16, {3, 1050000}},
                                            {DType::kFloat32, {5, 530000}},
                                            {DType::kFloat64, {9, 270000}},
                                            {DType::kComplex64, {7, 270000}},
                                            {DType::kFloat64, {45, 131075}},
                                            {DType::kFloat64, {45, 70000}},
                                            {DType::kComplex64, {31, 70000}}}) {
    const Tensor host = random_tensor(shape, dtype, 9), device = to_device(host, kGpu);
    const double ulps = is_integer(dtype) ? 0.0 : 2000.0;
    const std::string what = cat(dtype, " columns of ", shape[0]);
    expect_same(sum(device, {0}), sum(host, {0}), ulps, "sum of " + what);
    if (is_complex(dtype)) continue;
    expect_same(argmax(device, 0), argmax(host, 0), 0.0, "argmax of " + what);
    if (is_floating(dtype)) expect_same(var(device, {0}), var(host, {0}), 64.0, "var of " + what);
  }
}

TEST_F(GpuReduce, SameBitsEveryTime) {
  const Tensor device = to_device(random_tensor({3, 1 << 20}, DType::kFloat32, 4), kGpu);
  const Tensor first = to_device(sum(device, {1}), kCpu);
  for (int i = 0; i < 20; ++i) expect_same(sum(device, {1}), first, 0.0, "again");
}

/// Of sizes so different that another order of additions gives other bits.
Tensor uneven(const Shape& shape, DType dtype, int seed) {
  const Tensor sizes = random_tensor(shape, DType::kFloat64, seed + 100);
  return cast(multiply(random_tensor(shape, DType::kFloat64, seed), exp2(multiply(sizes, 8.0))),
              dtype);
}

void expect_cpus_bits(std::initializer_list<DType> dtypes) {
  int seed = 0;
  for (const DType dtype : dtypes) {
    for (const Shape& shape : {Shape{3, 5, 7}, Shape{1, 20, 1000}, Shape{130, 3, 64},
                               Shape{1, 1, 70001}, Shape{4099, 1, 3}}) {
      const bool is_real = is_floating(dtype);
      const Tensor host = is_real ? uneven(shape, dtype, ++seed) : random_tensor(shape, dtype, 7);
      const Tensor device = to_device(host, kGpu);
      for (const auto& axes : kAxes) {
        for (const SumMode mode : {SumMode::kCompensated, SumMode::kExact}) {
          // Sums of integers are exact in every mode.
          const bool is_mean = is_integer(dtype) || is_bool(dtype) || axes.size() == 2;
          const auto add = is_mean ? mean : sum;
          expect_same(add(device, axes, true, mode, nullptr), add(host, axes, true, mode, nullptr),
                      0.0, cat(name(mode), ' ', dtype, ' ', shape, " axes ", join(axes)));
        }
      }
    }
  }
}

// Apart from each other, as each takes many kernels.
TEST_F(GpuReduce, CompensatedAndExactSumsOfFloatsAreTheCpusBits) {
  expect_cpus_bits({DType::kFloat32});
}
TEST_F(GpuReduce, CompensatedAndExactSumsOfHalvesAreTheCpusBits) {
  expect_cpus_bits({DType::kFloat16});
}
TEST_F(GpuReduce, CompensatedAndExactSumsOfDoublesAreTheCpusBits) {
  expect_cpus_bits({DType::kFloat64});
}
TEST_F(GpuReduce, CompensatedAndExactSumsOfComplexNumbersAreTheCpusBits) {
  expect_cpus_bits({DType::kComplex64});
}
TEST_F(GpuReduce, CompensatedAndExactSumsOfBFloatsAreTheCpusBits) {
  expect_cpus_bits({DType::kBFloat16});
}
TEST_F(GpuReduce, CompensatedAndExactSumsOfComplexDoublesAreTheCpusBits) {
  expect_cpus_bits({DType::kComplex128});
}
TEST_F(GpuReduce, CompensatedAndExactMeansOfIntegersAreTheCpusBits) {
  expect_cpus_bits({DType::kBool, DType::kInt32});
}

TEST_F(GpuReduce, WideSumsOfViewsIntoStridedOutputs) {
  const Tensor host = uneven({4, 30, 310}, DType::kFloat32, 3), device = to_device(host, kGpu);
  const auto views = [](const Tensor& x) {
    const int64_t order[] = {2, 0, 1};
    return std::vector<Tensor>{slice(x, 2, 0, 310, 2), slice(x, 2, 3, 300), flip(x),
                               permute(x, order), broadcast_to(slice(x, 0, 0, 1), x.shape())};
  };
  const auto hosts = views(host), devices = views(device);
  for (const SumMode mode : {SumMode::kCompensated, SumMode::kExact}) {
    for (size_t k = 0; k < hosts.size(); ++k) {
      for (const auto& axes : kAxes) {
        expect_same(sum(devices[k], axes, false, mode), sum(hosts[k], axes, false, mode), 0.0,
                    cat(name(mode), " view ", k, " axes ", join(axes)));
      }
    }
    const Tensor whole = full({4, 3}, 9, DType::kFloat32, kGpu), expected = full({4, 3}, 9);
    const Tensor column = select(whole, 1, 1), wanted = select(expected, 1, 1);
    sum(device, {1, 2}, false, mode, &column);
    sum(host, {1, 2}, false, mode, &wanted);
    expect_same(whole, expected, 0.0, "a column as the output");
  }
}

TEST_F(GpuReduce, WideSumsOfInfinitiesNaNsAndHugeNumbers) {
  const double cases[][3] = {
      {HUGE_VAL, 1, 2}, {-HUGE_VAL, 1, HUGE_VAL}, {1e308, 1e308, -1e308}, {1e308, 1e308, 1},
      {NAN, 1, 2},      {5e-324, 5e-324, 0}};
  for (const auto& numbers : cases) {
    const Tensor host = zeros({100000}, DType::kFloat64);
    for (int i = 0; i < 3; ++i) host.data<double>()[i * 40000] = numbers[i];
    for (const SumMode mode : {SumMode::kCompensated, SumMode::kExact}) {
      expect_same(sum(to_device(host, kGpu), {}, false, mode), sum(host, {}, false, mode), 0.0,
                  cat(name(mode), ' ', numbers[0], ' ', numbers[1], ' ', numbers[2]));
    }
  }
}

TEST_F(GpuReduce, RunningSumsOfEveryDtypeAlongEveryAxis) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    for (const Shape& shape : {Shape{3, 5, 7}, Shape{1, 20, 1000}, Shape{130, 3, 64}}) {
      // Whole numbers: sums that are exact in any order.
      const Tensor host =
          cast(random_tensor(shape, is_bool(dtype) ? dtype : DType::kInt8, i), dtype);
      const Tensor device = to_device(host, kGpu);
      const double ulps = compute_dtype(dtype) != dtype ? 1.0 : 0.0;
      for (const int64_t axis : {0, 1, 2}) {
        expect_same(cumsum(device, axis), cumsum(host, axis), ulps,
                    cat("cumsum ", dtype, ' ', shape, " axis ", axis));
      }
    }
  }
}

/// Lengths about those of blocks and packs, where a step too many would reach beyond the end.
TEST_F(GpuReduce, WritesNothingAroundAnOutput) {
  for (const int64_t length : {1, 3, 255, 257, 2049, 70001}) {
    const Tensor host = random_tensor({3, length}, DType::kFloat32, static_cast<int>(length));
    const Tensor device = to_device(host, kGpu);
    for (const int64_t axis : {0, 1}) {
      const std::string what = cat(" of 3 x ", length, " along ", axis);
      const int64_t kept = axis == 0 ? length : 3;
      const Guarded largest({kept}, DType::kInt64, kGpu), smallest({kept}, DType::kInt64, kGpu);
      argmax(device, axis, false, &largest.tensor());
      argmin(device, axis, false, &smallest.tensor());
      expect_same(largest.tensor(), argmax(host, axis), 0.0, "argmax" + what);
      expect_same(smallest.tensor(), argmin(host, axis), 0.0, "argmin" + what);
      largest.expect_intact("argmax" + what);
      smallest.expect_intact("argmin" + what);
      const Tensor whole = cast(random_tensor({3, length}, DType::kInt8, 5), DType::kFloat32);
      const Guarded sums({3, length}, DType::kFloat32, kGpu);
      cumsum(to_device(whole, kGpu), axis, &sums.tensor());
      expect_same(sums.tensor(), cumsum(whole, axis), 0.0, "cumsum" + what);
      sums.expect_intact("cumsum" + what);
      const Guarded exact({kept}, DType::kFloat32, kGpu);
      sum(device, {axis}, false, SumMode::kExact, &exact.tensor());
      expect_same(exact.tensor(), sum(host, {axis}, false, SumMode::kExact), 0.0, "sum" + what);
      exact.expect_intact("exact sum" + what);
    }
  }
}

TEST_F(GpuReduce, RunningSumsOfLongLinesAndViews) {
  for (const int64_t size : {1, 2047, 2048, 2049, 524289, 1200007}) {
    const Tensor host = random_tensor({size}, DType::kInt32, 1), device = to_device(host, kGpu);
    expect_same(cumsum(device, 0), cumsum(host, 0), 0.0, cat("cumsum of ", size));
    expect_same(cumsum(flip(device), 0), cumsum(flip(host), 0), 0.0, cat("backwards ", size));
  }
  const Tensor x = to_device(random_tensor({600011}, DType::kFloat64, 2), kGpu);
  const Tensor first = to_device(cumsum(x, 0), kCpu);
  for (int i = 0; i < 4; ++i) expect_same(cumsum(x, 0), first, 0.0, "the same bits every time");
  const Tensor in_place = to_device(ones({5, 70000}, DType::kFloat32), kGpu);
  cumsum(in_place, 1, &in_place);
  expect_same(in_place, cumsum(ones({5, 70000}, DType::kFloat32), 1), 0.0, "in place");
}

}  // namespace
}  // namespace cuop
