// One long transform of a length without factors over all ranks.
#include <gmock/gmock.h>

#include <limits>
#include <random>

#include "cuop/core/text.h"
#include "cuop/dist/algo/fft.h"
#include "cuop/dist/exec/report.h"
#include "cuop/dist/plan/chirp_plan.h"
#include "cuop/dist/plan/fft_plan.h"
#include "cuop/dist/plan/map_plan.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/fft/fft.h"
#include "cuop/ops/index/view.h"
#include "tests/dist/algo_test.h"
#include "tests/dist/spectra.h"

namespace cuop::dist {
namespace {

using namespace rank_test;  // NOLINT: the frame of these tests
using ::testing::HasSubstr;

const CallOptions kByChirp{.strategy = kChirp};

TEST(ChirpPlan, LongLinesOfPrimeLengthUseAllRanksAndShortOnesStay) {
  const Sharding root = Sharding::on_rank(Mesh::line(8), 0), parts = split_over_ranks(8, 1, 0);
  for (const FftKind kind : kKinds) {
    const DType dtype = kind == FftKind::kRfft ? DType::kFloat32 : DType::kComplex64;
    for (const Sharding& at : {root, parts}) {
      const Plan plan = plan_fft(line_problem(kind, 16777259, at, dtype), {});
      EXPECT_EQ(plan.strategy, kChirp);
      for (const Candidate& other : plan.candidates) EXPECT_LE(plan.seconds(), other.seconds);
      EXPECT_NE(plan_fft(line_problem(kind, 101, at, dtype), {}).strategy, kChirp);
      // Where there are near factors four steps take less.
      EXPECT_EQ(plan_fft(line_problem(kind, 1 << 24, at, dtype), {}).strategy, kFourStep);
    }
  }
}

TEST(ChirpPlan, BytesAreThoseOfTwoMatricesAndOneBack) {
  constexpr int64_t kN = 100'003;
  const auto plan_of = [&](FftKind kind, DType dtype) {
    return plan_fft(line_problem(kind, kN, split_over_ranks(4, 1, 0), dtype), {}, kChirp);
  };
  const auto sent = [](int64_t elements) { return static_cast<double>(elements) * 0.75 * 16; };
  // The line, of 2 m and of m elements the ranks' three quarters, the result.
  const Plan whole = plan_of(FftKind::kFft, DType::kComplex128);
  EXPECT_NEAR(static_cast<double>(whole.bytes()), sent(kN + 3 * 2 * kN + kN), 0.05 * sent(8 * kN));
  const Plan real = plan_of(FftKind::kRfft, DType::kFloat64);
  EXPECT_NEAR(static_cast<double>(real.bytes()), sent(kN / 2 + 3 * 3 * kN / 2 + kN / 2),
              0.05 * sent(6 * kN));
}

TEST(ChirpPlan, OneRankTakesLongerForALargeFactor) {
  const auto seconds = [](int64_t n) {
    return plan_fft(line_problem(FftKind::kFft, n, split_over_ranks(2, 1, 0), DType::kComplex64),
                    {}, "one_rank")
        .seconds();
  };
  EXPECT_GT(seconds(1'000'003), 2 * seconds(1'000'000));
  EXPECT_LT(seconds(113 * 8191), 1.1 * seconds(1'000'003));
  EXPECT_LT(seconds(127 * 127 * 64), 1.1 * seconds(1 << 20));
  EXPECT_LT(seconds(0), 1e-3);
}

void try_every_length_by_chirp(int ranks) {
  rank_test::try_every_length(ranks, lengths_between(1, 150), kByChirp);
}

TEST(ChirpOverRanks, EveryLengthOnFewRanks) {
  for (const int ranks : {1, 2, 3}) try_every_length_by_chirp(ranks);
}
TEST(ChirpOverRanks, EveryLengthOnSevenRanks) { try_every_length_by_chirp(7); }

TEST(ChirpOverRanks, RandomLengthsAndPlaces) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      std::mt19937 random(static_cast<unsigned>(10 + ranks));
      const auto pick = [&](int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(random);
      };
      const Mesh line = Mesh::line(ranks);
      const std::vector<Sharding> places{split_over_ranks(ranks, 1, 0), Sharding::replicated(line),
                                         Sharding::on_rank(line, ranks - 1)};
      const auto place = [&] { return places[static_cast<size_t>(pick(0, 2))]; };
      for (int i = 0; i < 40; i += case_step()) {
        const int64_t n = pick(1, 600);
        const FftKind kind = kKinds[i % 4];
        const auto norm = static_cast<FftNorm>(i % 3);
        int64_t given = kind == FftKind::kIrfft ? n / 2 + 1 : n;
        if (pick(0, 1) == 0) given = pick(1, 700);  // cut or padded
        const Tensor x = input_of(kind, {given});
        const Sharding from = place();
        CallOptions options = kByChirp;
        if (pick(0, 1) == 0) options.output = place();
        expect_transformed(laid_out(comm, x, from), x, {kind, n, -1, norm}, options, 1e-11);
      }
    });
  }
}

TEST(ChirpPlan, FewLinesOfPrimeLengthUseAllRanks) {
  const Mesh mesh = Mesh::line(8);
  const auto plan_of = [&](const Shape& shape, int axis, std::optional<Sharding> wanted = {}) {
    const Sharding at = split_over_ranks(8, shape.ndim(), axis);
    return plan_fft(
        {"fft", {"x", shape, DType::kComplex64, at}, FftKind::kFft, {axis}, {shape[axis]}, wanted},
        {});
  };
  for (const int64_t lines : {1, 2, 3}) {
    EXPECT_EQ(plan_of({lines, 4'194'319}, 1).strategy, kChirp) << lines;
    EXPECT_EQ(plan_of({4'194'319, lines}, 0).strategy, kChirp) << lines;
    EXPECT_NE(plan_of({lines, 101}, 1).strategy, kChirp) << lines;
  }
  // Seven ranks with a line each take less than eight with parts of seven convolutions.
  const Sharding by_lines = split_over_ranks(8, 2, 0);
  EXPECT_EQ(plan_fft({"fft",
                      {"x", {7, 4'194'319}, DType::kComplex64, by_lines},
                      FftKind::kFft,
                      {1},
                      {4'194'319},
                      by_lines},
                     {})
                .strategy,
            "keep");
}

TEST(ChirpOverRanks, RandomNumbersOfLines) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      std::mt19937 random(static_cast<unsigned>(20 + ranks));
      const auto pick = [&](int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(random);
      };
      for (int i = 0; i < 40; i += case_step()) {
        const int64_t n = pick(1, 300);
        const int ndim = pick(1, 3), axis = pick(0, ndim - 1);
        const FftKind kind = kKinds[i % 4];
        const auto norm = static_cast<FftNorm>(i % 3);
        Shape shape;
        for (int dim = 0; dim < ndim; ++dim) shape.push_back(pick(1, std::max(1, ranks - 1)));
        shape[axis] = kind == FftKind::kIrfft ? n / 2 + 1 : n;
        if (pick(0, 1) == 0) shape[axis] = pick(1, 350);  // cut or padded
        // On one rank every line is one of enough.
        if (ranks == 1 && ndim > 1) continue;
        const Mesh line = Mesh::line(ranks);
        const auto place = [&] {
          const int at = pick(-2, ndim - 1);
          return at == -2   ? Sharding::replicated(line)
                 : at == -1 ? Sharding::on_rank(line, ranks - 1)
                            : split_over_ranks(ranks, ndim, at);
        };
        const Tensor x = input_of(kind, shape);
        const Sharding from = place();
        CallOptions options = kByChirp;
        if (pick(0, 1) == 0) options.output = place();
        expect_transformed(laid_out(comm, x, from), x, {kind, n, axis, norm}, options, 1e-11);
      }
    });
  }
}

TEST(ChirpOverRanks, EveryDtype) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kInt32, DType::kBool,
                              DType::kComplex64, DType::kFloat64}) {
      const Tensor x = is_complex(dtype) ? input_of(FftKind::kFft, {61}, real_dtype(dtype))
                                         : cast(multiply(noise({61}), 8.0), dtype);
      for (const FftKind kind : kKinds) {
        if (kind == FftKind::kRfft && is_complex(dtype)) continue;
        const Tensor expected = transformed(kind, x, 73);
        const double tolerance = itemsize(real_dtype(expected.dtype())) == 8 ? 1e-12 : 1e-3;
        expect_spectrum(comm, fft_from_root(comm, on_root(comm, x), {kind, 73}, kByChirp), expected,
                        tolerance, cat(dtype, ' ', static_cast<int>(kind)));
      }
    }
  });
}

TEST(ChirpOverRanks, EndsOfASpectrumAreReal) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    for (const int64_t n : {101, 202}) {
      const Tensor half = complex_noise({n / 2 + 1});  // both ends have imaginary parts
      expect_spectrum(comm,
                      fft_from_root(comm, on_root(comm, half), {FftKind::kIrfft, n}, kByChirp),
                      cuop::irfft(half, n), 1e-12, cat(n));
      const Tensor made =
          fft_from_root(comm, on_root(comm, noise({n})), {FftKind::kRfft, n}, kByChirp);
      if (!made.is_defined()) continue;
      const std::vector<double> numbers = values(parts_of(made));
      EXPECT_EQ(numbers[1], 0.0);
      if (n % 2 == 0) {
        EXPECT_EQ(numbers.back(), 0.0);
      }
    }
  });
}

TEST(ChirpOverRanks, ReadsViewsOfParts) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const Tensor x = input_of(FftKind::kFft, {97});
    const Tensor backwards = slice(x, 0, std::nullopt, std::nullopt, -1);
    expect_spectrum(comm, fft_from_root(comm, on_root(comm, backwards), {}, kByChirp),
                    cuop::fft(backwards), 1e-12, "backwards");
  });
}

TEST(ChirpOverRanks, NobodyHasAllOfIt) {
  run_ranks(7, [](const CommunicatorPtr& comm) {
    const DistTensor x = laid_out(comm, complex_noise({65'537}), split_over_ranks(7, 1, 0));
    const auto limited = [&](const char* strategy) {
      Machine machine;
      machine.memory = 3 << 20;  // of 1 MiB that x and the result have each
      return CallOptions{.strategy = strategy, .machine = machine};
    };
    const DistTensor made = fft(x, {}, limited(""));
    EXPECT_EQ(last_report().plan.strategy, kChirp);
    EXPECT_THAT(failure_of([&] { fft(x, {}, limited("one_rank")); }),
                HasSubstr("no plan fits the memory limit"));
    const DistTensor back = fft(made, {FftKind::kIfft}, limited(""));
    expect_close(parts_of(gather_all(back)), parts_of(gather_all(x)), 1e-13, "there and back");
  });
}

TEST(ChirpOverRanks, RefusesAsManyLinesAsRanksAndEmptyOnes) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    for (const Shape& shape : {Shape{13, 2}, Shape{13, 0}}) {
      const Tensor x = on_root(comm, noise(shape));
      EXPECT_THAT(failure_of([&] { fft_from_root(comm, x, {.n = 13, .dim = 0}, kByChirp); }),
                  HasSubstr("there is no strategy \"chirp\""));
    }
  });
}

}  // namespace
}  // namespace cuop::dist
