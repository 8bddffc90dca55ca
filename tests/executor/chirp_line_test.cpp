#include "cuop/executor/chirp_line.h"

#include <gmock/gmock.h>

#include <cmath>
#include <complex>
#include <limits>
#include <optional>
#include <string>

#include "cuop/core/text.h"
#include "cuop/dist/exec/rank_machine.h"
#include "cuop/executor/line_fft.h"
#include "cuop/executor/passes.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/fft/fft.h"
#include "tests/dist/spectra.h"
#include "tests/executor/tiled_test.h"

namespace cuop::executor {
namespace {

using namespace dist::rank_test;    // NOLINT: the frame of these tests
using namespace executor::testing;  // NOLINT
using dist::CommunicatorPtr;
using dist::FftKind;
using dist::run_ranks;

/// Random numbers, complex ones but for transforms from real ones.
Tensor given(FftKind kind, int64_t count, DType real = DType::kFloat64) {
  if (kind == FftKind::kRfft) return host_noise({count}, real);
  const Tensor numbers = host_noise({2, count});
  const Tensor x = empty({count}, DType::kComplex128);
  for (int64_t i = 0; i < count; ++i) {
    x.data<std::complex<double>>()[i] = {numbers.data<double>()[i],
                                         numbers.data<double>()[count + i]};
  }
  return cast(x, complex_dtype(real));
}

Tensor in_memory(const Tensor& x, const dist::FftBatch& batch) {
  return transformed(batch.kind, x, batch.n, -1, batch.norm);
}

/// With less there is no way.
int64_t least(const CommunicatorPtr& comm, const dist::FftBatch& batch, const Tensor& x) {
  return fft_line_plan(batch, dist::header_of(x), on_ranks(comm, within(1))).smallest;
}

/// The line's transform in the least memory is that of the line in memory.
void check(const CommunicatorPtr& comm, const Tensor& x, const dist::FftBatch& batch,
           double tolerance, const std::string& what) {
  const TiledOptions options = within(least(comm, batch, x));
  const Tensor made = fft_line(comm, on_root(comm, x), batch, options);
  EXPECT_EQ(options.report->passes, 4) << what;
  EXPECT_LE(options.report->peak, *options.limits.per_device) << what;
  expect_spectrum(comm, made, in_memory(x, batch), tolerance, what);
}

TEST(ChirpLine, LengthsWithoutNearFactorsInTheLeastMemory) {
  run_ranks(1, [](const CommunicatorPtr& comm) {
    int tried = 0;
    for (const FftKind kind : kKinds) {
      for (const int64_t n : {211, 331, 499, 2 * 211, 2 * 499, 3 * 331, 4 * 251, 1021, 1031}) {
        if (tried++ % case_step() != 0) continue;
        const Tensor x = given(kind, kind == FftKind::kIrfft ? n / 2 + 1 : n);
        check(comm, x, {kind, n, -1, FftNorm::kOrtho}, 1e-13,
              cat("kind ", static_cast<int>(kind), " of ", n));
      }
    }
  });
}

TEST(ChirpLine, LinesOfAllLengthsAreMadeWithin) {
  // Lengths of which the matrices have begun rows, whole ones, and more of them than elements.
  run_ranks(1, [](const CommunicatorPtr& comm) {
    int64_t lines = 0;
    for (const FftKind kind : kKinds) {
      for (int64_t n = 120; n < 400; n += 7 * case_step()) {
        const Tensor x = given(kind, kind == FftKind::kIrfft ? n / 2 + 1 : n);
        const dist::FftBatch batch{kind, n};
        const TiledOptions options = within(least(comm, batch, x));
        const CallPlan plan = fft_line_plan(batch, dist::header_of(x), on_ranks(comm, options));
        if (plan.way == "chirp") ++lines;
        const Tensor made = fft_line(comm, x, batch, options);
        expect_close(parts_of(made), parts_of(in_memory(x, batch)), 1e-12, cat(n));
      }
    }
    EXPECT_GT(lines * case_step(), 30);
  });
}

TEST(ChirpLine, LinesThatAreCutOrPadded) {
  run_ranks(1, [](const CommunicatorPtr& comm) {
    int tried = 0;
    for (const FftKind kind : kKinds) {
      for (const int64_t count : {1, 3, 30, 505, 506, 700, 1009, 1500}) {
        for (const int64_t n : {1009, 2 * 503}) {
          if (tried++ % case_step() != 0) continue;
          const Tensor x = given(kind, count);
          const dist::FftBatch batch{kind, n, -1, FftNorm::kForward};
          const TiledOptions options = within(least(comm, batch, x));
          const Tensor made = fft_line(comm, x, batch, options);
          expect_close(parts_of(made), parts_of(in_memory(x, batch)), 1e-12,
                       cat("kind ", static_cast<int>(kind), ", ", count, " as ", n));
          EXPECT_LE(options.report->peak, *options.limits.per_device);
        }
      }
    }
  });
}

TEST(ChirpLine, EveryDtype) {
  run_ranks(1, [](const CommunicatorPtr& comm) {
    int tried = 0;
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64,
                              DType::kInt8, DType::kUInt8, DType::kInt32, DType::kInt64,
                              DType::kBool, DType::kComplex64, DType::kComplex128}) {
      const bool is_float = is_floating(dtype) || is_complex(dtype);
      Tensor x = is_complex(dtype) ? cast(given(FftKind::kFft, 1009), dtype)
                                   : host_noise({1009}, DType::kFloat64);
      if (!is_complex(dtype)) x = cast(is_float ? x : abs(x * Scalar(100.0)), dtype);
      const bool is_single = dtype == DType::kFloat16 || dtype == DType::kBFloat16 ||
                             dtype == DType::kFloat32 || dtype == DType::kComplex64;
      for (const FftKind kind : kKinds) {
        if (kind == FftKind::kRfft && is_complex(dtype)) continue;
        if (tried++ % case_step() != 0) continue;
        const double tolerance = (is_float ? 1 : 1000) * (is_single ? 2e-6 : 1e-14);
        check(comm, x, {kind, 1009, -1, FftNorm::kOrtho}, tolerance,
              cat(dtype, ", kind ", static_cast<int>(kind)));
      }
    }
  });
}

TEST(ChirpLine, OverRanks) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const FftKind kind : kKinds) {
        const Tensor x = given(kind, kind == FftKind::kIrfft ? 505 : 1009, DType::kFloat32);
        const dist::FftBatch batch{kind, 1009, -1, FftNorm::kOrtho};
        check(comm, x, batch, 3e-6, cat(ranks, " ranks, kind ", static_cast<int>(kind)));
      }
    });
  }
}

TEST(ChirpLine, EndsOfASpectrumAreReal) {
  run_ranks(1, [](const CommunicatorPtr& comm) {
    for (const int64_t n : {1009, 2 * 499}) {
      const dist::FftBatch forward{FftKind::kRfft, n};
      const Tensor x = given(FftKind::kRfft, n);
      const Tensor half = fft_line(comm, x, forward, within(least(comm, forward, x)));
      const auto* spectrum = half.data<std::complex<double>>();
      EXPECT_EQ(spectrum[0].imag(), 0.0);
      if (n % 2 == 0) {
        EXPECT_EQ(spectrum[n / 2].imag(), 0.0);
      }
      // Nobody looks at the imaginary parts of what has none.
      const Tensor spoilt = cuop::rfft(x);
      spoilt.data<std::complex<double>>()[0].imag(std::numeric_limits<double>::infinity());
      if (n % 2 == 0) spoilt.data<std::complex<double>>()[n / 2].imag(1e9);
      check(comm, spoilt, {FftKind::kIrfft, n}, 1e-13, "spoilt");
    }
  });
}

TEST(ChirpLine, NumbersAsLargeAsTheResultAllows) {
  run_ranks(1, [](const CommunicatorPtr& comm) {
    // Of float32 up to 3.4e38: sums of all are below.
    const Tensor x = full({1009}, 3e35, DType::kComplex64);
    const dist::FftBatch batch{FftKind::kFft, 1009};
    const Tensor made = fft_line(comm, x, batch, within(least(comm, batch, x)));
    const auto* spectrum = made.data<std::complex<float>>();
    EXPECT_NEAR(spectrum[0].real() / (1009 * 3e35), 1.0, 1e-6);
    for (int64_t i = 1; i < 1009; ++i) EXPECT_LT(std::abs(spectrum[i]), 1e33F) << i;
    const Tensor broken = full({1009}, std::numeric_limits<double>::quiet_NaN(), DType::kFloat64);
    const Tensor nothing = fft_line(comm, broken, batch, within(least(comm, batch, broken)));
    for (int64_t i = 0; i < 1009; ++i) {
      EXPECT_TRUE(std::isnan(nothing.data<std::complex<double>>()[i].real())) << i;
    }
  });
}

TEST(ChirpLine, PlansSayWhatItTakes) {
  run_ranks(1, [](const CommunicatorPtr& comm) {
    const int64_t n = (1 << 20) + 7;  // a prime
    const auto planned = [&](int64_t length, int64_t bytes, FftKind kind = FftKind::kFft) {
      const Header line{{length}, kind == FftKind::kRfft ? DType::kFloat32 : DType::kComplex64};
      TiledOptions options = within(bytes);
      options.machine = tile_machine(*comm, home(), options.limits, dist::HostPages::kOrdinary);
      options.machine->stretch = 0;  // ways are weighed by their bytes
      return fft_line_plan({kind}, line, on_ranks(comm, options));
    };
    const CallPlan plan = planned(n, 1 << 20);
    EXPECT_TRUE(plan.is_feasible());
    EXPECT_EQ(plan.way, "chirp");
    std::string passes;
    for (const TilePass& pass : plan.passes) passes += pass.text + " ";
    EXPECT_EQ(passes, "filter columns products result ");
    // Two matrices of a little more than 2 n, or three; half of it more or less of real numbers.
    EXPECT_NEAR(static_cast<double>(plan.scratch), 2 * 2 * 8.0 * n, 0.05 * 4 * 8.0 * n);
    EXPECT_EQ(plan.kept_scratch * 2, plan.scratch * 3);
    EXPECT_NEAR(static_cast<double>(planned(n, 1 << 20, FftKind::kRfft).scratch), 3 * 8.0 * n,
                0.05 * 3 * 8.0 * n);
    EXPECT_LT(plan.smallest, 200 * kKiB);
    EXPECT_TRUE(planned(n, plan.smallest).is_feasible());
    const CallPlan refused = planned(n, plan.smallest - 1);
    EXPECT_FALSE(refused.is_feasible());
    EXPECT_EQ(refused.smallest, plan.smallest);
    // Four steps move less, where there are near factors; where they are far apart they need more.
    EXPECT_EQ(planned(1 << 20, 1 << 20).way, "four steps");
    EXPECT_EQ(planned(1 << 20, 1 << 20).scratch, 8 << 20);
    EXPECT_EQ(planned(8 * 131071, 1 << 20).way, "chirp");
    EXPECT_EQ(planned(8 * 131071, 12 << 20).way, "four steps");
    EXPECT_EQ(planned(n, 100 << 20).way, "at once");
    EXPECT_EQ(planned(n, 100 << 20).scratch, 0);
    EXPECT_FALSE(planned(3, 10).is_feasible());
  });
}

TEST(ChirpLine, ALimitTooSmallSaysTheSmallestThatWorks) {
  run_ranks(1, [](const CommunicatorPtr& comm) {
    const Tensor x = given(FftKind::kFft, 1009);
    const dist::FftBatch batch{FftKind::kFft};
    const int64_t bytes = least(comm, batch, x);
    EXPECT_THAT(failure_of([&] { fft_line(comm, x, batch, within(bytes - 1)); }),
                ::testing::HasSubstr(cat("the smallest tiles need ", bytes, " bytes")));
  });
}

}  // namespace
}  // namespace cuop::executor
