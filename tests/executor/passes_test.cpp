// Calls in passes that are cut off, and later ones that go on with them.
#include "cuop/executor/passes.h"

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/executor/grid_fft.h"
#include "cuop/executor/line_fft.h"
#include "cuop/executor/operations.h"
#include "cuop/executor/sweeps.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/fft/fft.h"
#include "tests/dist/algo_test.h"
#include "tests/error_of.h"

namespace cuop::executor {
namespace {

using test::error_of;
using ::testing::HasSubstr;
using namespace dist::rank_test;  // NOLINT: the frame of these tests
using dist::CommunicatorPtr;
using dist::run_ranks;

constexpr int64_t kKiB = 1024;

/// What is left of a call when its ranks, threads of this process, are gone.
struct Remains {
  std::mutex mutex;
  std::vector<dist::Header> headers;
  std::vector<Tensor> arrays;
  std::optional<PassState> state;
  std::vector<DoneTile> tiles;
  int64_t noted = 0;   ///< in all runs
  int64_t cut_at = 0;  ///< tiles after which the run is cut off
};

struct CutOff : std::runtime_error {
  CutOff() : std::runtime_error("cut off") {}
};

class MemoryLog : public PassLog {
 public:
  explicit MemoryLog(Remains& remains) : remains_(remains) {}

  bool is_kept() const override { return true; }
  std::optional<PassState> left() override { return remains_.state; }
  void open(const std::vector<dist::Header>& arrays) override {
    if (remains_.state) {
      EXPECT_EQ(remains_.headers, arrays);
      return;
    }
    remains_.headers = arrays;
    remains_.arrays.clear();
    for (const dist::Header& array : arrays) {
      remains_.arrays.push_back(empty(array.shape, array.dtype));
    }
  }
  Tensor array(int64_t number) override {
    return remains_.arrays.at(static_cast<size_t>(number) % remains_.arrays.size());
  }
  std::vector<DoneTile> begin(const PassState& state) override {
    const auto same = [&](const PassState& other) {
      return other.number == state.number && other.way == state.way && other.counts == state.counts;
    };
    if (!remains_.state || !same(*remains_.state)) remains_.tiles.clear();
    remains_.state = state;
    return remains_.tiles;
  }
  std::string place() override { return "here"; }
  Tensor join(const std::string& place, const dist::Header&) override {
    EXPECT_EQ(place, "here");
    return {};
  }
  void note(const DoneTile& tile) override {
    const std::lock_guard lock(remains_.mutex);
    if (remains_.noted >= remains_.cut_at) throw CutOff();
    ++remains_.noted;
    remains_.tiles.push_back(tile);
  }

 private:
  Remains& remains_;
};

using Call = std::function<Tensor(const CommunicatorPtr&, const TiledOptions&)>;

/// The call is cut off again and again, after ever other numbers of tiles, and made again by other
/// numbers of ranks within other limits, until it ends; how often it was cut off. Tiles are made
/// once, but for those of passes that began anew.
int64_t ends_like(const Call& call, const std::vector<int64_t>& limits, const Tensor& expected,
                  double tolerance) {
  Remains remains;
  int64_t cuts = 0;
  bool is_ended = false;
  while (!is_ended && cuts < 300) {
    remains.cut_at = remains.noted + 1 + cuts * 7 % 5;
    const int ranks = cuts % 2 == 0 ? 1 : 3;
    const int64_t limit = limits[static_cast<size_t>(cuts) % limits.size()];
    try {
      run_ranks(ranks, [&](const CommunicatorPtr& comm) {
        TiledOptions options{{0.2, limit}, 1, {}, std::make_shared<TiledReport>()};
        options.log = std::make_shared<MemoryLog>(remains);
        const Tensor made = call(comm, options);
        EXPECT_LE(options.report->peak, limit);
        if (comm->rank() != 0) return;
        expect_close(as_real(made), as_real(expected), tolerance, "gone on with");
        is_ended = true;
      });
    } catch (const std::exception& error) {
      EXPECT_THAT(error.what(), HasSubstr("cut off"));
      ++cuts;
    }
  }
  EXPECT_TRUE(is_ended);
  return cuts;
}

Tensor noise_here(const Shape& shape, DType dtype = DType::kFloat64, unsigned seed = 1) {
  return to_device(noise(shape, dtype, seed), kCpu);
}
Tensor of_root(const CommunicatorPtr& comm, const Tensor& x) {
  return comm->rank() == 0 ? x : Tensor();
}

TEST(Passes, TransformsThatAreCutOffGoOn) {
  const Tensor grid = noise_here({36, 40}), line = noise_here({1200});
  const std::vector<int64_t> limits{8 * kKiB, 6 * kKiB, 11 * kKiB};
  EXPECT_GT(ends_like(
                [&](const auto& comm, const auto& options) {
                  return fft2d_grid(comm, of_root(comm, grid), FftNorm::kBackward, options);
                },
                limits, cuop::fft2(grid), 1e-12),
            3);
  for (const auto kind : {dist::FftKind::kFft, dist::FftKind::kIfft, dist::FftKind::kRfft}) {
    const Tensor expected = kind == dist::FftKind::kFft    ? cuop::fft(line)
                            : kind == dist::FftKind::kIfft ? cuop::ifft(line)
                                                           : cuop::rfft(line);
    EXPECT_GT(ends_like(
                  [&](const auto& comm, const auto& options) {
                    return fft_line(comm, of_root(comm, line), {kind}, options);
                  },
                  limits, expected, 1e-12),
              3);
  }
}

TEST(Passes, LinesThatBecomeRealGoOn) {
  const Tensor half = cuop::rfft(noise_here({1200}));
  EXPECT_GT(ends_like(
                [&](const auto& comm, const auto& options) {
                  return fft_line(comm, of_root(comm, half), {dist::FftKind::kIrfft}, options);
                },
                {8 * kKiB, 7 * kKiB, 11 * kKiB}, cuop::irfft(half), 1e-12),
            3);
}

TEST(Passes, LinesOfPrimeLengthThatAreCutOffGoOn) {
  const Tensor line = noise_here({1009}), half = cuop::rfft(line);
  for (const bool is_back : {false, true}) {
    const dist::FftBatch batch{is_back ? dist::FftKind::kIrfft : dist::FftKind::kFft,
                               is_back ? std::optional<int64_t>(1009) : std::nullopt};
    EXPECT_GT(ends_like(
                  [&](const auto& comm, const auto& options) {
                    return fft_line(comm, of_root(comm, is_back ? half : line), batch, options);
                  },
                  {10 * kKiB, 9 * kKiB, 12 * kKiB}, is_back ? line : cuop::fft(line), 1e-11),
              6);
  }
}

TEST(Passes, SweepsThatAreCutOffGoOn) {
  const Tensor grid = noise_here({40, 20}, DType::kFloat32);
  const Tensor rhs = noise_here({40, 20}, DType::kFloat32, 2);
  const Tensor kernel = noise_here({3, 3}, DType::kFloat32, 3);
  const double tolerance = home().is_cpu() ? 0.0 : 1e-5;
  const std::vector<int64_t> limits{6 * kKiB, 7 * kKiB, 6 * kKiB, 8 * kKiB,
                                    30 * kKiB};  // the last holds it whole
  for (const Boundary boundary : {Boundary::kZero, Boundary::kPeriodic}) {
    EXPECT_GT(ends_like(
                  [&](const auto& comm, const auto& options) {
                    return stencil_2d(comm, of_root(comm, grid), of_root(comm, kernel), boundary,
                                      41, options);
                  },
                  limits, cuop::stencil2d(grid, kernel, boundary, 41), tolerance),
              3);
    EXPECT_GT(ends_like(
                  [&](const auto& comm, const auto& options) {
                    return jacobi_2d(comm, of_root(comm, grid), of_root(comm, rhs),
                                     {0.5, boundary, 41, 0.0}, nullptr, options);
                  },
                  limits, cuop::jacobi2d(grid, rhs, {0.5, boundary, 41, 0.0}).u, tolerance),
              3);
  }
}

TEST(Passes, SweepsThatWereCutOffStopWhereOthersDo) {
  const Tensor grid = zeros({40, 20}, DType::kFloat64), rhs = noise_here({40, 20});
  const JacobiResult whole = cuop::jacobi2d(grid, rhs, {1.0, Boundary::kZero, 500, 0.5});
  ASSERT_GT(whole.sweeps, 10);
  ASSERT_LT(whole.sweeps, 500);
  dist::SolveInfo info;
  EXPECT_GT(ends_like(
                [&](const auto& comm, const auto& options) {
                  dist::SolveInfo mine;
                  const Tensor u = jacobi_2d(comm, of_root(comm, grid), of_root(comm, rhs),
                                             {1.0, Boundary::kZero, 500, 0.5}, &mine, options);
                  if (comm->rank() == 0) info = mine;
                  return u;
                },
                {10 * kKiB, 8 * kKiB, 14 * kKiB}, whole.u, home().is_cpu() ? 0.0 : 1e-12),
            3);
  EXPECT_EQ(info.sweeps, whole.sweeps);
  EXPECT_NEAR(info.update_norm, whole.update_norm, 1e-12 * whole.update_norm);
}

TEST(Passes, OnePassIsACallToo) {
  const Tensor a = noise_here({50, 41}), b = noise_here({41}, DType::kFloat64, 2);
  EXPECT_GT(
      ends_like(
          [&](const auto& comm, const auto& options) {
            return run_logged(comm, add_tiles(), {of_root(comm, a), of_root(comm, b)}, options);
          },
          {2 * kKiB, 3 * kKiB}, cuop::add(a, b), 0),
      3);
}

TEST(Passes, SweepsOfLessMemoryAreLessDeep) {
  const Tensor grid = noise_here({40, 20}), kernel = noise_here({3, 3}, DType::kFloat64, 3);
  Remains remains;
  const auto run = [&](int64_t limit, int64_t cut_at) {
    remains.cut_at = cut_at;
    Tensor made;
    run_ranks(1, [&](const CommunicatorPtr& comm) {
      TiledOptions options{{0.2, limit}};
      options.log = std::make_shared<MemoryLog>(remains);
      made = stencil_2d(comm, grid, kernel, Boundary::kZero, 60, options);
    });
    return made;
  };
  EXPECT_THROW(run(60 * kKiB, 1), std::exception);
  ASSERT_GT(remains.state->counts[1], 8);
  expect_close(run(6 * kKiB, 1 << 20), cuop::stencil2d(grid, kernel, Boundary::kZero, 60),
               home().is_cpu() ? 0.0 : 1e-12, "less deep");
}

TEST(Passes, TilesAreNotMadeTwice) {
  const Tensor line = noise_here({1200});
  Remains whole, cut;
  const auto run = [&](Remains& remains, int64_t cut_at) {
    remains.cut_at = cut_at;
    run_ranks(1, [&](const CommunicatorPtr& comm) {
      TiledOptions options{{0.2, 8 * kKiB}};
      options.log = std::make_shared<MemoryLog>(remains);
      fft_line(comm, line, {}, options);
    });
  };
  run(whole, 1 << 20);
  for (int64_t at = 1; at < whole.noted; at += 3) EXPECT_THROW(run(cut, at), std::exception);
  run(cut, 1 << 20);
  EXPECT_EQ(cut.noted, whole.noted);
}

TEST(Passes, WhatCannotBeGoneOnWithIsSaidOnEveryRank) {
  const Tensor grid = noise_here({40, 20}), kernel = ones({3, 3}, DType::kFloat64);
  const auto message = [&](const PassState& state, const std::vector<double>& figures) {
    Remains remains;
    remains.state = state;
    remains.cut_at = 1 << 20;
    remains.headers = {dist::header_of(grid), dist::header_of(grid)};
    remains.arrays = {zeros({40, 20}, DType::kFloat64), zeros({40, 20}, DType::kFloat64)};
    remains.tiles = {{whole_box({40, 20}), figures}};
    std::array<std::string, 2> said;
    run_ranks(2, [&](const CommunicatorPtr& comm) {
      TiledOptions options{{0.2, 16 * kKiB}};
      options.log = std::make_shared<MemoryLog>(remains);
      try {
        jacobi_2d(comm, of_root(comm, grid), of_root(comm, grid), {1.0, Boundary::kZero, 6, 0.0},
                  nullptr, options);
      } catch (const std::exception& error) {
        said[static_cast<size_t>(comm->rank())] = error.what();
      }
    });
    EXPECT_FALSE(said[0].empty() != said[1].empty());
    return said[0];
  };
  for (const PassState& state : {PassState{0, "at once", {0, 1}}, PassState{-1, "sweeps", {0, 1}},
                                 PassState{1, "sweeps", {3}}, PassState{1, "sweeps", {3, 4}},
                                 PassState{1, "sweeps", {-1, 2}}, PassState{1, "sweeps", {3, 0}}}) {
    EXPECT_THAT(message(state, {}), HasSubstr("with which this one of 6 cannot go on"));
  }
  EXPECT_THAT(message({1, "sweeps", {3, 2}}, {1.0}), HasSubstr("1 norms were left of 2 sweeps"));
  EXPECT_EQ(message({1, "sweeps", {3, 2}}, std::vector<double>(80, 1.0)), "");
}

}  // namespace
}  // namespace cuop::executor
