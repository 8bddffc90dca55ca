// One long transform over all ranks.
#include <gmock/gmock.h>

#include "cuop/core/text.h"
#include "cuop/dist/algo/fft.h"
#include "cuop/dist/exec/report.h"
#include "cuop/dist/plan/four_step_plan.h"
#include "cuop/dist/plan/map_plan.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "tests/dist/algo_test.h"
#include "tests/dist/spectra.h"

namespace cuop::dist {
namespace {

using ::testing::HasSubstr;
using namespace rank_test;  // NOLINT: the frame of these tests

const CallOptions kInFourSteps{.strategy = kFourStep};

TEST(FourStepPlan, FactorsAreNearAndShared) {
  using Pair = std::pair<int64_t, int64_t>;
  const auto factors = [](int64_t n, int ranks) {
    const auto found = four_step_factors(n, ranks);
    return found ? Pair(found->n1, found->n2) : Pair(0, 0);
  };
  EXPECT_EQ(factors(1 << 20, 4), Pair(1024, 1024));
  EXPECT_EQ(factors(4, 4), Pair(2, 2));
  // 15 rows and 16 columns leave one of 8 ranks with less; 5 x 48 would leave three without rows.
  EXPECT_EQ(factors(240, 8), Pair(15, 16));
  EXPECT_EQ(factors(2 * 10007, 2), Pair(2, 10007));
  for (const int64_t n : {1, 2, 3, 10007}) EXPECT_EQ(factors(n, 2).first, 0) << n;
  for (int64_t n = 4; n <= 300; ++n) {
    const auto [n1, n2] = factors(n, 3);
    EXPECT_TRUE(n1 == 0 || (n1 > 1 && n1 <= n2 && n1 * n2 == n)) << n;
  }
}

TEST(FourStepPlan, SmoothFactorsAreNearAndHardlyMoreThanAsked) {
  const auto largest_prime = [](int64_t n) {
    int64_t largest = 1;
    for (int64_t p = 2; n > 1; ++p) {
      for (; n % p == 0; n /= p) largest = p;
    }
    return largest;
  };
  const auto check = [&](int64_t least, double most) {
    const auto [n1, n2] = smooth_factors(least);
    ASSERT_GE(n1 * n2, least);
    ASSERT_LE(static_cast<double>(n1 * n2), most * static_cast<double>(least)) << least;
    ASSERT_GE(n1, n2);
    ASSERT_LE(n1, 5 * n2) << least;
    ASSERT_LE(std::max(largest_prime(n1), largest_prime(n2)), 7) << least;
  };
  for (int64_t least = 1; least < 3000; ++least) check(least, least < 300 ? 4.0 : 1.1);
  for (int64_t least = 3000; least < 2'000'000; least += 977) check(least, 1.06);
  for (int bits = 21; bits < 60; ++bits) check((int64_t{1} << bits) + 12345, 1.04);
}

TEST(FourStepPlan, LongTransformsUseAllRanksAndShortOnesStay) {
  const Sharding root = Sharding::on_rank(Mesh::line(8), 0);
  const Sharding lying = split_over_ranks(8, 1, 0);
  for (const FftKind kind : {FftKind::kFft, FftKind::kRfft, FftKind::kIrfft}) {
    for (const Sharding& at : {root, lying}) {
      FftProblem large = line_problem(kind, 1 << 24, at, DType::kComplex64);
      if (kind == FftKind::kRfft) large.x.dtype = DType::kFloat32;
      const Plan plan = plan_fft(large, {});
      EXPECT_EQ(plan.strategy, kFourStep);
      for (const Candidate& other : plan.candidates) EXPECT_LE(plan.seconds(), other.seconds);
      FftProblem small = line_problem(kind, 64, at, large.x.dtype);
      EXPECT_NE(plan_fft(small, {}).strategy, kFourStep);
    }
  }
}

/// Two ranks that are threads with a core each of an AMD EPYC, measured when nothing else ran
/// there: benchmarks/results/2026-11-24-four-step.md has what each way took then.
TEST(FourStepPlan, TakesTheWayThatWasFaster) {
  Machine machine;
  machine.flops = 1.37e11;
  machine.double_speed = 0.47;
  machine.fft_speed = 0.345;
  machine.long_fft_speed = 0.073;
  machine.memory_bandwidth = 5e10;
  machine.transposed_speed = 0.2;
  machine.link_bandwidth = 2e10;
  machine.latency = 2e-6;
  const auto takes_four_steps = [&](int log, const Sharding& at) {
    FftProblem problem = line_problem(FftKind::kFft, int64_t{1} << log, at, DType::kComplex64);
    if (at.single_rank() >= 0) problem.wanted = at;
    const Plan plan = plan_fft(problem, machine);
    return plan.strategy == kFourStep;
  };
  const Sharding root = Sharding::on_rank(Mesh::line(2), 0), parts = split_over_ranks(2, 1, 0);
  for (const int log : {16, 17}) {
    EXPECT_FALSE(takes_four_steps(log, root)) << log;
    EXPECT_FALSE(takes_four_steps(log, parts)) << log;
  }
  for (int log = 19; log <= 24; ++log) {
    EXPECT_TRUE(takes_four_steps(log, root)) << log;
    EXPECT_TRUE(takes_four_steps(log, parts)) << log;
  }
}

TEST(FourStepPlan, SaysWhyAShortLengthWithoutFactorsStaysOnOneRank) {
  const Plan plan =
      plan_fft(line_problem(FftKind::kFft, 1009, split_over_ranks(4, 1, 0), DType::kComplex64), {});
  EXPECT_EQ(plan.strategy, "one_rank");
  EXPECT_EQ(plan.detail, "1009 has no factors");
}

TEST(FourStepPlan, SendsHalfOfWhatBelongsToRealNumbers) {
  constexpr int64_t kN = 1 << 12, kSent = kN * 3 / 4 * 16;  // what leaves 4 ranks, complex128
  const auto bytes = [&](FftKind kind, DType dtype) {
    return plan_fft(line_problem(kind, kN, split_over_ranks(4, 1, 0), dtype), {}, kFourStep)
        .bytes();
  };
  EXPECT_EQ(bytes(FftKind::kFft, DType::kComplex128), 3 * kSent);
  // One row of 33 and the ends of the halves are more than half.
  EXPECT_LT(bytes(FftKind::kRfft, DType::kFloat64), 1.6 * kSent);
  EXPECT_LT(bytes(FftKind::kIrfft, DType::kComplex128), 1.6 * kSent);
}

TEST(FourStepPlan, RealNumbersTakeHalfTheArithmetic) {
  const Sharding root = Sharding::on_rank(Mesh::line(4), 0);
  constexpr int64_t kN = 1 << 20;
  for (const char* strategy : {"root", kFourStep}) {
    const auto flops = [&](FftKind kind, DType dtype) {
      return plan_fft(line_problem(kind, kN, root, dtype), {}, strategy).flops();
    };
    const double whole = flops(FftKind::kFft, DType::kComplex64);
    EXPECT_NEAR(flops(FftKind::kRfft, DType::kFloat32), whole / 2, 0.01 * whole) << strategy;
    EXPECT_NEAR(flops(FftKind::kIrfft, DType::kComplex64), whole / 2, 0.01 * whole) << strategy;
  }
}

/// That has factors.
void try_every_length_in_four_steps(int ranks) {
  std::vector<int64_t> lengths = lengths_between(4, 200);
  std::erase_if(lengths, [&](int64_t n) { return !four_step_factors(n, ranks); });
  rank_test::try_every_length(ranks, lengths, kInFourSteps);
}

TEST(FourStep, EveryLengthOnFewRanks) {
  for (const int ranks : {1, 2, 3}) try_every_length_in_four_steps(ranks);
}
TEST(FourStep, EveryLengthOnFourRanks) { try_every_length_in_four_steps(4); }
TEST(FourStep, EveryLengthOnSevenRanks) { try_every_length_in_four_steps(7); }

TEST(FourStep, RandomTensorsLengthsAndPlaces) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      std::mt19937 random(static_cast<unsigned>(10 + ranks));
      const auto pick = [&](int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(random);
      };
      const std::vector<Sharding> places = matrix_shardings(ranks);
      const auto place = [&] {
        return places[static_cast<size_t>(pick(0, static_cast<int>(places.size()) - 1))];
      };
      for (int i = 0; i < 40; i += case_step()) {
        // Two dimensions, of which the other one is shorter than there are ranks.
        const int dim = pick(0, 1);
        const int64_t n = pick(2, 12) * pick(2, 12), other = pick(0, ranks - 1);
        const FftKind kind = kKinds[i % 4];
        const auto norm = static_cast<FftNorm>(i % 3);
        int64_t given = kind == FftKind::kIrfft ? n / 2 + 1 : n;
        if (pick(0, 1) == 0) given = pick(1, 150);  // cut or padded
        const Shape shape = dim == 0 ? Shape{given, other} : Shape{other, given};
        const Tensor x = input_of(kind, shape);
        const Sharding from = place();
        CallOptions options = kInFourSteps;
        if (pick(0, 1) == 0) options.output = place();
        expect_transformed(laid_out(comm, x, from), x, {kind, n, dim, norm}, options, 1e-12);
      }
    });
  }
}

TEST(FourStep, EveryDtype) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kInt32, DType::kBool,
                              DType::kComplex64, DType::kFloat64}) {
      const Tensor x = is_complex(dtype) ? input_of(FftKind::kFft, {60}, real_dtype(dtype))
                                         : cast(multiply(noise({60}), 8.0), dtype);
      for (const FftKind kind : kKinds) {
        if (kind == FftKind::kRfft && is_complex(dtype)) continue;
        const Tensor expected = transformed(kind, x, 72);
        const double tolerance = itemsize(real_dtype(expected.dtype())) == 8 ? 1e-12 : 1e-3;
        expect_spectrum(comm, fft_from_root(comm, on_root(comm, x), {kind, 72}, kInFourSteps),
                        expected, tolerance, cat(dtype, ' ', static_cast<int>(kind)));
      }
    }
  });
}

TEST(FourStep, ReadsViewsOfParts) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const Tensor x = input_of(FftKind::kFft, {2, 36});
    const Tensor backwards = slice(select(x, 0, 1), 0, std::nullopt, std::nullopt, -1);
    expect_spectrum(comm, fft_from_root(comm, on_root(comm, backwards), {}, kInFourSteps),
                    cuop::fft(backwards), 1e-12, "backwards");
    const DistTensor columns = laid_out(comm, transpose(x), split_over_ranks(3, 2, 0));
    const DistTensor made = fft(columns, {.dim = 0}, kInFourSteps);
    expect_close(parts_of(gather_all(made)), parts_of(cuop::fft(transpose(x), {}, 0)), 1e-12,
                 "a transposed part");
  });
}

TEST(FourStep, IgnoresTheImaginaryPartsThatRealNumbersLack) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    for (const int64_t n : {12, 18, 15}) {
      const Tensor half = complex_noise({n / 2 + 1});  // both ends have imaginary parts
      expect_spectrum(comm,
                      fft_from_root(comm, on_root(comm, half), {FftKind::kIrfft, n}, kInFourSteps),
                      cuop::irfft(half, n), 1e-12, cat(n));
    }
  });
}

TEST(FourStep, LeavesTheSpectrumInEvenPartsWhereItCan) {
  run_ranks(4, [](const CommunicatorPtr& comm) {
    const Sharding parts = split_over_ranks(4, 1, 0);
    const DistTensor x = laid_out(comm, complex_noise({1024}), parts);
    const DistTensor spectrum = fft(x, {}, kInFourSteps);
    EXPECT_EQ(spectrum.sharding(), parts);
    const DistTensor back = fft(spectrum, {FftKind::kIfft}, kInFourSteps);
    expect_close(parts_of(gather_all(back)), parts_of(gather_all(x)), 1e-14, "there and back");
  });
}

TEST(FourStep, NobodyHasAllOfIt) {
  run_ranks(4, [](const CommunicatorPtr& comm) {
    const DistTensor x = laid_out(comm, noise({1 << 14}), split_over_ranks(4, 1, 0));
    const auto limited = [&](const char* strategy) {
      Machine machine;
      machine.memory = 320 << 10;  // of 256 KiB that the result has
      return CallOptions{.strategy = strategy, .machine = machine};
    };
    fft(x, {}, limited(""));
    EXPECT_EQ(last_report().plan.strategy, kFourStep);
    EXPECT_THAT(failure_of([&] { fft(x, {}, limited("one_rank")); }),
                HasSubstr("no plan fits the memory limit"));
  });
}

TEST(FourStep, RefusesLengthsWithoutFactors) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const Tensor x = on_root(comm, noise({13}));
    EXPECT_THAT(
        failure_of([&] { fft_from_root(comm, x, {}, kInFourSteps); }),
        HasSubstr("there is no strategy \"four_step\"; possible here are chirp, one_rank, root"));
    expect_spectrum(comm, fft_from_root(comm, x), cuop::fft(noise({13})), 1e-12, "after");
  });
}

}  // namespace
}  // namespace cuop::dist
