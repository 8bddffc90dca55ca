#include "cuop/executor/line_steps.h"

#include <gtest/gtest.h>

#include <complex>
#include <optional>
#include <utility>

#include "cuop/core/text.h"
#include "cuop/executor/line_fft.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/fft/fft.h"
#include "tests/executor/tiled_test.h"

namespace cuop::executor {
namespace {

using namespace dist::rank_test;    // NOLINT: the frame of these tests
using namespace executor::testing;  // NOLINT
using dist::CommunicatorPtr;
using dist::run_ranks;

/// Of the line in the least memory that will do: in four steps where its length has near factors.
CallPlan smallest_plan(const CommunicatorPtr& comm, const dist::FftBatch& batch,
                       const Header& line) {
  const CallPlan refused = fft_line_plan(batch, line, on_ranks(comm, within(1)));
  return fft_line_plan(batch, line, on_ranks(comm, within(refused.smallest)));
}

TEST(LineSteps, RealLinesOfAnyLengthMoveHalfTheBytes) {
  run_ranks(1, [](const CommunicatorPtr& comm) {
    int64_t lines = 0;
    for (int64_t n = 4; n < 280; n += case_step()) {
      const Tensor x = host_noise({n});
      const auto spectrum = [&](dist::FftKind kind, int64_t bytes) {
        const TiledOptions options = within(bytes);
        const Tensor made = fft_line(comm, x, {kind, {}, -1, FftNorm::kOrtho}, options);
        return std::pair(made, *options.report);
      };
      const CallPlan plan = smallest_plan(comm, {dist::FftKind::kRfft}, {{n}, DType::kFloat64});
      if (plan.way != "four steps") continue;
      ++lines;
      const auto [made, report] = spectrum(dist::FftKind::kRfft, plan.smallest);
      expect_close(as_real(made), as_real(cuop::rfft(x, {}, -1, FftNorm::kOrtho)), 1e-12,
                   cat("length ", n));
      EXPECT_EQ(report.passes, 2) << n;
      EXPECT_LE(report.peak, plan.smallest);
    }
    EXPECT_GT(lines, is_slow() ? 15 : 130);  // others go by a chirp
    const auto moved = [&](dist::FftKind kind) {
      int64_t bytes = 0;
      const Header line{{1 << 20},
                        kind == dist::FftKind::kRfft ? DType::kFloat32 : DType::kComplex64};
      for (const TilePass& pass :
           fft_line_plan({kind}, line, on_ranks(comm, within(1 << 20))).passes) {
        bytes += pass.plan.uploaded + pass.plan.downloaded;
      }
      return static_cast<double>(bytes);
    };
    EXPECT_NEAR(moved(dist::FftKind::kRfft), 0.5 * moved(dist::FftKind::kFft),
                0.01 * moved(dist::FftKind::kFft));
  });
}

TEST(LineSteps, RealLinesOverRanks) {
  const Tensor line = host_noise({2 * 3 * 5 * 31}), odd = host_noise({3 * 7 * 45}, DType::kFloat32);
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const auto given = [&](const Tensor& x) { return comm->rank() == 0 ? x : Tensor(); };
      const dist::FftKind kind = dist::FftKind::kRfft;
      const Tensor a = fft_line(comm, given(line), {kind}, within(4 * kKiB));
      expect_rooted(comm, real_or_none(a), as_real(cuop::rfft(line)), 1e-12, "even");
      const Tensor b = fft_line(comm, given(odd), {kind}, within(3 * kKiB));
      expect_rooted(comm, real_or_none(b), as_real(cuop::rfft(odd)), 1e-5, "odd");
      const Tensor padded = fft_line(comm, given(line), {kind, 1001}, within(8 * kKiB));
      expect_rooted(comm, real_or_none(padded), as_real(cuop::rfft(line, 1001)), 1e-12, "padded");
    });
  }
}

/// Complex numbers of which none is real, as the first one of a spectrum would be.
Tensor spectrum_of(int64_t count, DType dtype = DType::kComplex128) {
  const Tensor numbers = host_noise({2 * count});
  const Tensor x = empty({count}, DType::kComplex128);
  for (int64_t i = 0; i < count; ++i) {
    x.data<std::complex<double>>()[i] = {numbers.data<double>()[2 * i],
                                         numbers.data<double>()[2 * i + 1]};
  }
  return cast(x, dtype);
}

TEST(LineSteps, LinesThatBecomeRealMoveHalfTheBytes) {
  run_ranks(1, [](const CommunicatorPtr& comm) {
    int64_t lines = 0;
    for (int64_t n = 4; n < 260; n += case_step()) {
      const Tensor x = spectrum_of(n / 2 + 1);
      const dist::FftBatch batch{dist::FftKind::kIrfft, n, -1, FftNorm::kOrtho};
      const CallPlan plan = smallest_plan(comm, batch, dist::header_of(x));
      if (plan.way != "four steps") continue;
      ++lines;
      const TiledOptions options = within(plan.smallest);
      const Tensor made = fft_line(comm, x, batch, options);
      expect_close(made, cuop::irfft(x, n, -1, FftNorm::kOrtho), 1e-13, cat("length ", n));
      EXPECT_EQ(options.report->passes, 2) << n;
      EXPECT_LE(options.report->peak, plan.smallest);
    }
    EXPECT_GT(lines, is_slow() ? 13 : 100);
    const auto moved = [&](dist::FftKind kind, int64_t count) {
      int64_t bytes = 0;
      const CallPlan plan = fft_line_plan({kind, 1 << 20}, {{count}, DType::kComplex64},
                                          on_ranks(comm, within(1 << 20)));
      EXPECT_EQ(plan.way, "four steps");
      for (const TilePass& pass : plan.passes) bytes += pass.plan.uploaded + pass.plan.downloaded;
      return static_cast<double>(bytes);
    };
    const double whole = moved(dist::FftKind::kIfft, 1 << 20);
    EXPECT_NEAR(moved(dist::FftKind::kIrfft, (1 << 19) + 1), 0.5 * whole, 0.02 * whole);
  });
}

TEST(LineSteps, LinesThatBecomeRealOverRanks) {
  const Tensor half = spectrum_of(3 * 5 * 31 + 1), single = spectrum_of(473, DType::kComplex64);
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const auto check = [&](const Tensor& x, std::optional<int64_t> n, double tolerance,
                             const char* what) {
        const dist::FftBatch batch{dist::FftKind::kIrfft, n};
        const int64_t least =
            fft_line_plan(batch, dist::header_of(x), on_ranks(comm, within(1))).smallest;
        const TiledOptions options = within(least + kKiB);
        const Tensor given = comm->rank() == 0 ? x : Tensor();
        const Tensor made = fft_line(comm, given, batch, options);
        expect_rooted(comm, made, cuop::irfft(x, n), tolerance, what);
        EXPECT_EQ(options.report->passes, 2) << what;
      };
      check(half, std::nullopt, 1e-13, "even");
      check(single, 945, 1e-6, "odd");
      check(half, 1023, 1e-13, "padded");
      check(half, 735, 1e-13, "cut");
      check(real(half), 930, 1e-13, "of real numbers");
    });
  }
}

}  // namespace
}  // namespace cuop::executor
