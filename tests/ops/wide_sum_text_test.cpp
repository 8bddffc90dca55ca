// The text of the GPU's compensated and exact sums, run on host threads beside the CPU's sums: the
// bits must be the same.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/reduce/reduce.h"
#include "cuop/ops/reduce/reduce_kernels.h"
#include "tests/jit/host_text.h"
#include "tests/values.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include "cuop/ops/reduce/compensated_sum.cuh"
#include "cuop/ops/reduce/exact_sum.cuh"
#pragma GCC diagnostic pop

namespace cuop::kernels {
namespace {

using test::same_bits;
using Kind = WideSumForm::Kind;
using jit::RawState;
using test::run_together;

/// Others are read the same way; the tests on a GPU take all of them.
using Sources = TypeList<int32_t, uint64_t, Half, float, double>;

/// `call` with compile-time forms of two bools.
template <class Call>
void choose(bool a, bool b, Call&& call) {
  if (a) {
    b ? call(std::true_type{}, std::true_type{}) : call(std::true_type{}, std::false_type{});
  } else {
    b ? call(std::false_type{}, std::true_type{}) : call(std::false_type{}, std::false_type{});
  }
}

template <class Source, class Result>
void run_exact(const WideSumForm& form, const jit::WideSum& a, unsigned blocks) {
  constexpr bool kIsInteger = std::is_integral_v<Source>;
  choose(form.is_linear, form.by_columns, [&]<class L, class C>(L, C) {
    const auto team = [&]<int Team>() {
      run_together(blocks, 256, [&] {
        jit::exact_sums<Source, kIsInteger, L::value, Team, C::value, Result>(a);
      });
    };
    if (form.team == 256) return team.template operator()<256>();
    form.team == 32 ? team.template operator()<32>() : team.template operator()<8>();
  });
}

template <class Source, class Result>
void run_compensated(const WideSumForm& form, const jit::WideSum& a, unsigned blocks) {
  constexpr bool kIsDouble = std::is_integral_v<Source> || std::is_same_v<Source, double>;
  constexpr int kTaken = kIsDouble ? 1 : 8;
  choose(form.is_linear, form.team == 1, [&]<class L, class T>(L, T) {
    constexpr int kTeam = T::value ? 1 : 32;
    run_together(blocks, 256, [&] {
      switch (form.kind) {
        case Kind::kShortRows:
          return jit::compensated_short_rows<Source, kTaken, L::value, kTeam, Result>(a);
        case Kind::kRows:
          return jit::compensated_rows<Source, kTaken, L::value, Result>(a);
        default:
          return jit::compensated_columns<Source, kTaken, L::value, Result>(a);
      }
    });
  });
}

/// Results of a sum have the elements' type, of means of integers float64.
template <class Source>
using ResultOf = std::conditional_t<std::is_integral_v<Source>, double, Source>;

void run_plan(WideSumPlan plan, const void* x, void* result) {
  std::vector<std::byte> partials(static_cast<size_t>(plan.partial_bytes));
  std::vector<unsigned> arrivals(static_cast<size_t>(plan.arrivals));
  plan.arguments.x = x;
  plan.arguments.result = result;
  plan.arguments.partials = partials.data();
  plan.arguments.arrivals = arrivals.data();
  // Fewer than there is work for: blocks go round again.
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(plan.blocks, 5));
  visit_dtype(Sources{}, plan.form.source, "test", [&](auto tag) {
    using Source = typename decltype(tag)::type;
    if (plan.form.kind == Kind::kExact) {
      run_exact<Source, ResultOf<Source>>(plan.form, plan.arguments, blocks);
    } else if (plan.form.gives_states) {
      run_compensated<Source, RawState>(plan.form, plan.arguments, blocks);
    } else {
      run_compensated<Source, ResultOf<Source>>(plan.form, plan.arguments, blocks);
    }
  });
  for (const unsigned each : arrivals) EXPECT_EQ(each, 0u);  // for the next launch
}

void run_joined(const JoinedFold& joined, const FoldPlan& fold, const WideSumPlan& whole,
                const Tensor& x, const Tensor& result) {
  const auto states = [](const FoldPlan& plan) {
    return std::vector<jit::CompensatedSum>(static_cast<size_t>(plan.states()));
  };
  const auto* data = static_cast<const std::byte*>(x.data());
  auto wide = states(joined.wide), rest = states(fold);
  run_plan(plan_wide_sum(joined.wide, nullptr, 1), data, wide.data());
  if (joined.rest_rows > 0) {
    run_plan(plan_wide_sum(joined.rest, nullptr, 1),
             data + joined.rest_offset * itemsize(x.dtype()), rest.data());
  }
  jit::JoinedSum a{wide.data(), joined.rest_rows > 0 ? rest.data() : nullptr,
                   fold.kept.inner().size, joined.join, whole.arguments};
  a.sum.result = result.data();
  visit_dtype(Sources{}, x.dtype(), "test", [&](auto tag) {
    using Result = ResultOf<typename decltype(tag)::type>;
    test::run_threads(2, 256, [&] { jit::compensated_joined<Result>(a); });
  });
}

/// What the GPU would write, with so many multiprocessors.
void sum_by_text(const Reduction& reduction, const Tensor& x, const std::vector<int>& axes,
                 const Tensor& given, int64_t multiprocessors) {
  const bool is_parts = is_complex(x.dtype());
  const Tensor elements = is_parts ? as_real(x) : x, result = is_parts ? as_real(given) : given;
  const FoldInput input = fold_input(reduction, elements.dtype());
  for_fold_parts("test", input, elements, axes, result,
                 [&](const FoldPlan& fold, const Tensor& part, const Tensor& to) {
                   const DType dtype = to.dtype();
                   WideSumPlan plan = plan_wide_sum(fold, &dtype, multiprocessors);
                   if (reduction.kind == ReduceKind::kMean) {
                     plan.arguments.divisor = static_cast<uint64_t>(fold.length());
                   }
                   const JoinedFold joined =
                       fold.by_columns && input.kind == ReduceKind::kCompensatedSum
                           ? join_rows(fold)
                           : JoinedFold{};
                   if (joined.join > 1) return run_joined(joined, fold, plan, part, to);
                   run_plan(plan, part.data(), to.data());
                 });
}

/// Numbers of very different sizes, so that every other order of additions gives other bits.
Tensor summands(const Shape& shape, DType dtype, int seed, int spread = 20) {
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  std::uniform_int_distribution<int> exponent(-spread, spread);
  std::normal_distribution<double> mantissa;
  const Tensor values = empty(shape, is_complex(dtype) ? DType::kComplex128 : DType::kFloat64);
  auto* value = static_cast<double*>(values.data());
  for (int64_t i = 0; i < values.size() * (is_complex(dtype) ? 2 : 1); ++i) {
    value[i] = std::ldexp(mantissa(random), exponent(random));
  }
  if (!is_integer(dtype) && !is_bool(dtype)) return cast(values, dtype);
  const Tensor whole = empty(shape, DType::kInt64);
  for (int64_t i = 0; i < whole.size(); ++i) {
    whole.data<int64_t>()[i] = static_cast<int64_t>(random());
  }
  return cast(whole, dtype);
}

void expect_cpu_sums(const Tensor& x, const std::vector<int64_t>& axes, SumMode mode,
                     const std::string& what, int64_t multiprocessors = 1) {
  const bool is_whole = is_integer(x.dtype()) || is_bool(x.dtype());
  for (const ReduceKind kind : {ReduceKind::kSum, ReduceKind::kMean}) {
    if (is_whole && kind == ReduceKind::kSum) continue;  // exact as it is
    const Tensor wanted =
        kind == ReduceKind::kSum ? sum(x, axes, true, mode) : mean(x, axes, true, mode);
    const Tensor given = full(wanted.shape(), 77, wanted.dtype());
    std::vector<int> reduced = normalize_axes(axes, x.ndim(), "test");
    sum_by_text({kind, mode}, x, reduced, given, multiprocessors);
    EXPECT_TRUE(same_bits(given, wanted))
        << name(mode) << ' ' << name(kind) << ' ' << x.dtype() << ' ' << x.shape() << " over "
        << join(axes) << ' ' << what;
  }
}

constexpr DType kSumDTypes[] = {DType::kInt32,     DType::kUInt64,  DType::kFloat16,
                                DType::kFloat32,   DType::kFloat64, DType::kComplex64,
                                DType::kComplex128};
constexpr SumMode kModes[] = {SumMode::kCompensated, SumMode::kExact};

TEST(WideSumText, EveryDtypeHasTheCpusBits) {
  for (const DType dtype : kSumDTypes) {
    for (const SumMode mode : kModes) {
      expect_cpu_sums(summands({7, 300}, dtype, 1), {1}, mode, "rows");
      expect_cpu_sums(summands({300, 40}, dtype, 2), {0}, mode, "columns");
      expect_cpu_sums(summands({401, 3}, dtype, 3), {0}, mode, "few columns");
    }
  }
}

TEST(WideSumText, RowsOfEveryLengthHaveTheCpusBits) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    for (const int64_t n :
         {1, 2, 31, 32, 33, 255, 256, 257, 1021, 4099, 16384, 16385, 65537, 140001}) {
      const Tensor x = summands({2, n}, dtype, 4);
      for (const SumMode mode : kModes) expect_cpu_sums(x, {1}, mode, "rows", 4);
    }
  }
}

TEST(WideSumText, ColumnsOfEveryLengthHaveTheCpusBits) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
             {2, 33}, {7, 31}, {8, 257}, {255, 45}, {257, 32}, {2048, 33}, {4200, 35}}) {
      const Tensor x = summands({rows, columns}, dtype, 5);
      for (const SumMode mode : kModes) expect_cpu_sums(x, {0}, mode, "columns", 4);
    }
    // Narrow ones, which the CPU takes several rows at a time of.
    for (const auto& [rows, columns] :
         std::vector<std::pair<int64_t, int64_t>>{{260, 1}, {261, 3}, {5000, 5}, {131, 31}}) {
      const Tensor x = summands({3, rows, columns}, dtype, 6);
      for (const SumMode mode : kModes) expect_cpu_sums(x, {1}, mode, "narrow", 4);
    }
  }
}

TEST(WideSumText, FloatsOfAllSizesInARowHaveTheCpusBits) {
  const auto row = [](int64_t n, auto value) {
    const Tensor x = empty({n}, DType::kFloat32);
    for (int64_t i = 0; i < n; ++i) x.data<float>()[i] = static_cast<float>(value(i));
    return x;
  };
  const auto expect = [](const Tensor& x, const std::string& what) {
    expect_cpu_sums(x, {0}, SumMode::kExact, what);
  };
  // So many of the largest size beside the first that an integer of 64 bits would overflow.
  expect(row(700001, [](int64_t i) { return i < 256 ? 1.0 : 0x1.fffffep6; }), "largest");
  expect(row(700001, [](int64_t i) { return i < 256 ? 1.0 : -0x1.fffffep6; }), "most negative");
  for (const int64_t n : {5000, 60001}) {
    const auto power = [n](int64_t i) { return static_cast<int>(i * 270 / n) - 145; };
    expect(row(n, [&](int64_t i) { return std::ldexp(i % 2 == 0 ? 1.0 : -0.7, power(i)); }),
           "growing, from subnormals");
    expect(row(n, [&](int64_t i) { return std::ldexp(1.1, power(n - 1 - i)); }), "shrinking");
    expect(row(n, [&](int64_t i) { return i % 3 == 0   ? 0x1p-140
                                          : i % 7 == 0 ? -0.0
                                                       : 3e38; }),
           "subnormals beside the largest");
    expect(row(n, [&](int64_t i) { return i % 5 == 0 ? 0.3 : 0.0; }), "zeros");
    const float infinity = std::numeric_limits<float>::infinity();
    for (const float special : {infinity, -infinity, infinity - infinity}) {
      for (const double other : {1.0, 3e38, 1e-42}) {
        expect(
            row(n, [&](int64_t i) { return i == n / 2   ? special
                                           : i % 2 == 0 ? other
                                                        : -other; }),
            cat(special, " beside ", other));
      }
    }
  }
}

/// Views of a tensor of three axes.
std::vector<std::pair<std::string, Tensor>> views_of(const Tensor& x) {
  const int64_t order[] = {2, 0, 1};
  return {{"every other", slice(x, 2, 0, x.shape(2), 2)},
          {"part", slice(x, 2, 3, 300)},
          {"backwards", flip(x)},
          {"permuted", permute(x, order)},
          {"broadcast", broadcast_to(slice(x, 0, 0, 1), x.shape())}};
}

TEST(WideSumText, ViewsHaveTheCpusBits) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const auto& [what, view] : views_of(summands({3, 9, 310}, dtype, 7))) {
      for (const std::vector<int64_t>& axes :
           std::vector<std::vector<int64_t>>{{}, {0}, {2}, {0, 1}, {1, 2}, {0, 2}}) {
        for (const SumMode mode : kModes) expect_cpu_sums(view, axes, mode, what);
      }
    }
  }
}

TEST(WideSumText, LongRowsOfSeveralAxesHaveTheCpusBits) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    for (const auto& [what, view] : views_of(summands({6, 70, 310}, dtype, 8))) {
      for (const SumMode mode : kModes) expect_cpu_sums(view, {}, mode, what, 2);
    }
  }
}

TEST(WideSumText, ResultsGoToStridedOutputs) {
  const Tensor x = summands({37, 50}, DType::kFloat32, 8);
  for (const SumMode mode : kModes) {
    const Tensor whole = full({3, 37}, 9), wanted = full({3, 37}, 9);
    const Tensor out = transpose(slice(whole, 0, 1, 2)), there = transpose(slice(wanted, 0, 1, 2));
    sum_by_text({ReduceKind::kSum, mode}, x, {1}, out, 1);
    sum(x, {1}, true, mode, &there);
    EXPECT_TRUE(same_bits(whole, wanted)) << name(mode);
  }
}

TEST(WideSumText, SpecialNumbersAreAddedAsOnTheCpu) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double cases[][3] = {{kInf, 1, 2},        {-kInf, 1, kInf},         {kInf, kInf, -1},
                             {1e308, 1e308, 1},   {1e308, 1e308, -1e308},   {-1e308, -1e308, 3},
                             {5e-324, -0.0, 0.0}, {5e-324, 5e-324, 1e-310}, {std::nan(""), 1, 2}};
  for (const auto& row : cases) {
    const Tensor x = summands({3, 260}, DType::kFloat64, 9);
    for (int64_t i = 0; i < 3; ++i) x.data<double>()[i * 90] = row[i];
    for (const SumMode mode : kModes) {
      for (const int64_t axis : {0, 1}) {
        const Tensor wanted = sum(x, {axis}, true, mode), given = empty(wanted.shape(), x.dtype());
        sum_by_text({ReduceKind::kSum, mode}, x, {static_cast<int>(axis)}, given, 1);
        for (int64_t i = 0; i < given.size(); ++i) {
          const double a = given.data<double>()[i], b = wanted.data<double>()[i];
          EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b)))
              << name(mode) << ' ' << a << " instead of " << b;
        }
      }
    }
  }
}

TEST(WideSumText, ExactSumsOfAnyExponentsAndSplits) {
  const Tensor x = summands({20011}, DType::kFloat64, 10, 1000);
  for (const int64_t multiprocessors : {1, 2, 7}) {
    expect_cpu_sums(x, {0}, SumMode::kExact, cat(multiprocessors, " processors"), multiprocessors);
  }
}

}  // namespace
}  // namespace cuop::kernels
