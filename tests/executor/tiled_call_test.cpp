#include "cuop/executor/tiled_call.h"

#include <gmock/gmock.h>

#include <atomic>
#include <random>
#include <utility>

#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"
#include "cuop/executor/grid_fft.h"
#include "cuop/executor/line_fft.h"
#include "cuop/executor/operations.h"
#include "cuop/executor/passes.h"
#include "cuop/executor/sweeps.h"
#include "cuop/memory/limited.h"
#include "cuop/ops/conv/conv.h"
#include "cuop/ops/copy/pinned.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/fft/fft.h"
#include "cuop/ops/matmul/matmul.h"
#include "cuop/ops/reduce/reduce.h"
#include "tests/dist/algo_test.h"
#include "tests/error_of.h"
#include "tests/executor/tiled_test.h"
#include "tests/sanitized.h"

namespace cuop::executor {
namespace {

using test::error_of;
using ::testing::HasSubstr;
using namespace dist::rank_test;    // NOLINT: the frame of these tests
using namespace executor::testing;  // NOLINT
using dist::CommunicatorPtr;
using dist::run_ranks;

/// The operation of rank 0's arrays in `bytes` a device equals `expected`, on every number of
/// ranks.
void expect_tiled(const TileOperation& operation, const std::vector<Tensor>& inputs,
                  const Tensor& expected, int64_t bytes, double tolerance) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      std::vector<Tensor> given(inputs.size());
      if (comm->rank() == 0) given = inputs;
      const TiledOptions options = within(bytes);
      const Tensor result = run_tiled(comm, operation, given, options);
      const std::string what =
          cat(operation.text, " on ", ranks, " ranks: ", options.report->plan.to_string());
      expect_rooted(comm, real_or_none(result), as_real(expected), tolerance, what);
      EXPECT_LE(options.report->peak, bytes) << what;
      EXPECT_TRUE(comm->rank() != 0 || result.device().is_cpu());
    });
  }
}

TEST(Tiled, Products) {
  const Tensor a = host_noise({50, 41}), b = host_noise({41, 37}, DType::kFloat64, 2);
  expect_tiled(matmul_tiles(), {a, b}, cuop::matmul(a, b), 8 * kKiB, 1e-13);
  const Tensor x = host_noise({4, 9, 11}), y = host_noise({4, 11, 8}, DType::kFloat64, 2);
  expect_tiled(batch_matmul_tiles(), {x, y}, cuop::matmul(x, y), 4 * kKiB, 1e-13);
}

TEST(Tiled, ElementsAndTheirOrder) {
  const Tensor a = host_noise({30, 40}), b = host_noise({40}, DType::kFloat64, 2);
  expect_tiled(add_tiles(), {a, b}, cuop::add(a, b), 2 * kKiB, 0);
  expect_tiled(transpose_tiles(0, 1), {a}, contiguous(transpose(a)), 2 * kKiB, 0);
}

TEST(Tiled, Reductions) {
  const Tensor x = host_noise({30, 40, 5}, DType::kFloat32);
  for (const auto& axes : std::vector<std::vector<int64_t>>{{}, {0}, {1, 2}, {-1}}) {
    expect_tiled(reduce_tiles({ReduceKind::kSum, axes, true, SumMode::kExact}), {x},
                 cuop::sum(x, axes, true, SumMode::kExact), 32 * kKiB, 0);
    expect_tiled(reduce_tiles({ReduceKind::kMax, axes}), {x}, cuop::max(x, axes), 4 * kKiB, 0);
  }
}

TEST(Tiled, Transforms) {
  const Tensor x = host_noise({21, 32});
  expect_tiled(fft_tiles({dist::FftKind::kFft, {}, 0}), {x}, cuop::fft(x, {}, 0), 4 * kKiB, 1e-12);
  expect_tiled(fft_tiles({dist::FftKind::kRfft, 24}), {x}, cuop::rfft(x, 24), 4 * kKiB, 1e-12);
  const Tensor images = host_noise({6, 40, 5});
  for (const Dims& dims : {Dims{2, 0}, Dims{0, 2}, Dims{-1, -3}}) {  // lengths go with their dims
    const dist::Fft2dBatch batch{Dims{7, 3}, dims, {FftNorm::kOrtho, false}};
    expect_tiled(fft2d_tiles(batch), {images},
                 cuop::fft2(images, Dims{7, 3}, dims, FftNorm::kOrtho), 8 * kKiB, 1e-12);
  }
}

TEST(Tiled, Convolutions) {
  const Tensor x = host_noise({3, 4, 12, 11}), w = host_noise({6, 2, 3, 3}, DType::kFloat64, 2);
  const Tensor bias = host_noise({6}, DType::kFloat64, 3);
  ConvOptions options;
  options.padding = {1, 2};
  options.groups = 2;
  expect_tiled(conv_tiles(options), {x, w, bias}, cuop::conv2d(x, w, &bias, options), 8 * kKiB,
               1e-12);
}

TEST(Tiled, GridsAndLinesThatFitNowhere) {
  const Tensor grid = host_noise({24, 30}), line = host_noise({720});
  for (const int ranks : {1, 3}) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const auto given = [&](const Tensor& x) { return comm->rank() == 0 ? x : Tensor(); };
      const Tensor made = fft2d_grid(comm, given(grid), FftNorm::kBackward, within(4 * kKiB));
      expect_rooted(comm, real_or_none(made), as_real(cuop::fft2(grid)), 1e-12, "grid");
      const Tensor spectrum = fft_line(comm, given(line), {}, within(9 * kKiB));
      expect_rooted(comm, real_or_none(spectrum), as_real(cuop::fft(line)), 1e-12, "line");
    });
  }
}

TEST(Tiled, SweepsHaveTheBitsOfWholeGrids) {
  const Tensor grid = host_noise({40, 20}, DType::kFloat32);
  const Tensor rhs = host_noise({40, 20}, DType::kFloat32, 2);
  const Tensor kernel = host_noise({3, 3}, DType::kFloat32, 3);
  for (const Boundary boundary : {Boundary::kZero, Boundary::kPeriodic}) {
    const Tensor swept = cuop::stencil2d(grid, kernel, boundary, 6);
    const JacobiResult solved = cuop::jacobi2d(grid, rhs, {0.5, boundary, 11, 0.0});
    for (const int ranks : rank_counts()) {
      run_ranks(ranks, [&](const CommunicatorPtr& comm) {
        const auto given = [&](const Tensor& x) { return comm->rank() == 0 ? x : Tensor(); };
        expect_rooted(comm,
                      stencil_2d(comm, given(grid), given(kernel), boundary, 6, within(6 * kKiB)),
                      swept, home().is_cpu() ? 0.0 : 1e-5, "stencil");
        dist::SolveInfo info;
        const Tensor u = jacobi_2d(comm, given(grid), given(rhs), {0.5, boundary, 11, 0.0}, &info,
                                   within(8 * kKiB));
        expect_rooted(comm, u, solved.u, home().is_cpu() ? 0.0 : 1e-5, "jacobi");
        EXPECT_EQ(info.sweeps, 11);
        EXPECT_NEAR(info.update_norm, solved.update_norm, 1e-9 * (1 + solved.update_norm));
        EXPECT_NEAR(info.residual_norm, solved.residual_norm, 1e-3 * solved.residual_norm);
      });
    }
  }
}

TEST(Tiled, WhatDoesNotFitSaysHowMuchWould) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const Tensor x = comm->rank() == 0 ? host_noise({4, 100}) : Tensor();
    std::string message;
    try {
      run_tiled(comm, fft_tiles({}), {x}, within(100));
    } catch (const MemoryError& error) {
      message = error.what();
      EXPECT_GT(error.figures().requested, 100);
    }
    EXPECT_THAT(message, HasSubstr("the smallest tiles need"));
    const Tensor y = run_tiled(comm, add_tiles(), {x, x}, within(kKiB));  // the ranks go on
    EXPECT_EQ(y.is_defined(), comm->rank() == 0);
  });
}

TEST(Tiled, GridsThatDoNotFitAreRefusedOnEveryRank) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const auto given = [&](const Tensor& x) { return comm->rank() == 0 ? x : Tensor(); };
    const Tensor grid = given(host_noise({40, 20})), rhs = given(host_noise({20, 40}));
    const Tensor whole_numbers = given(zeros({40, 20}, DType::kInt64)),
                 kernel = given(ones({3, 3}));
    const TiledOptions options = within(4 * kKiB);
    EXPECT_THAT(error_of<ShapeError>([&] { jacobi_2d(comm, grid, rhs, {}, nullptr, options); }),
                HasSubstr("jacobi_2d: grid (40, 20) and rhs (20, 40)"));
    const auto swept = [&] {
      stencil_2d(comm, whole_numbers, kernel, Boundary::kZero, 3, options);
    };
    EXPECT_THAT(error_of<DTypeError>(swept), HasSubstr("stencil_2d: a floating grid is needed"));
  });
}

/// Copies whose work takes far more memory than it said.
TileOperation greedy(int64_t extra) {
  TileOperation made = transpose_tiles(0, 1);
  made.describe = [extra, plain = made.describe](const std::vector<Header>& inputs) {
    Tiling tiling = plain(inputs);
    tiling.make = [extra, work = tiling.make](const std::vector<Part>& parts, const Box& output,
                                              Interval step) {
      const Tensor held = empty({output.size() * extra}, DType::kUInt8, parts[0].device);
      return work(parts, output, step);
    };
    return tiling;
  };
  return made;
}

TEST(Tiled, GoesOnInSmallerTilesWhereMemoryIsShort) {
  const Tensor x = host_noise({64, 48});
  for (const int ranks : {1, 3}) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const TiledOptions options = within(16 * kKiB);
      const Tensor y = run_tiled(comm, greedy(200), {comm->rank() == 0 ? x : Tensor()}, options);
      expect_rooted(comm, y, contiguous(transpose(x)), 0, "greedy");
      EXPECT_GT(options.report->halvings, 0);
      EXPECT_LE(options.report->peak, 16 * kKiB);
    });
  }
}

TEST(Tiled, EndsWhereNotEvenTheSmallestTileFits) {
  run_ranks(1, [](const CommunicatorPtr& comm) {
    EXPECT_THROW(run_tiled(comm, greedy(1 << 20), {host_noise({8, 8})}, within(16 * kKiB)),
                 MemoryError);
  });
}

/// The same on a device whose memory inputs take, as they do not on the host, where they are views.
TileOperation with_copies(TileOperation operation) {
  operation.describe = [plain = operation.describe](const std::vector<Header>& inputs) {
    Tiling tiling = plain(inputs);
    tiling.make = [work = tiling.make](const std::vector<Part>& parts, const Box& output,
                                       Interval step) {
      std::vector<Part> copies = parts;
      for (Part& part : copies) part.local = clone(part.local);
      return work(copies, output, step);
    };
    return tiling;
  };
  return operation;
}

/// An operation of arrays of random sizes, and what it makes.
struct RandomCall {
  TileOperation operation;
  std::vector<Tensor> inputs;
  Tensor expected;
  int64_t smallest;  ///< bytes of a tile, generously
};

RandomCall random_call(std::mt19937& random) {
  const auto size = [&] { return std::uniform_int_distribution<int64_t>(1, 70)(random); };
  const auto seed = static_cast<unsigned>(random());
  const Tensor a = host_noise({size(), size()}, DType::kFloat64, seed);
  switch (random() % 5) {
    case 0: {
      const Tensor b = host_noise({a.shape(1), size()}, DType::kFloat64, seed + 1);
      return {matmul_tiles(), {a, b}, cuop::matmul(a, b), kKiB};
    }
    case 1: {
      const Tensor b = host_noise({a.shape(1)}, DType::kFloat64, seed + 1);
      return {add_tiles(), {a, b}, cuop::add(a, b), kKiB};
    }
    case 2:
      return {reduce_tiles({ReduceKind::kSum, {0}}), {a}, cuop::sum(a, {0}), kKiB};
    case 3:
      return {fft_tiles({dist::FftKind::kFft}), {a}, cuop::fft(a), 6 * kKiB};
    default:
      return {transpose_tiles(0, 1), {a}, contiguous(transpose(a)), kKiB};
  }
}

TEST(Tiled, WhatOthersTakeMeanwhileIsLeftToThem) {
  // Somebody else's share of the memory grows and shrinks while the work goes on, up to what leaves
  // half of the limit.
  if (!home().is_cpu()) GTEST_SKIP() << "the pool of the host is limited here";
  std::mt19937 random(3);
  constexpr int64_t kSpare = 8 * kKiB;
  int64_t halvings = 0;
  // Of all cases 35 to 39 tiles are halved: a seventh of them under a sanitizer would be too few to
  // count.
  constexpr int kStep = test::kIsSanitized ? 2 : 1;
  for (int i = 0; i < 1000; i += kStep) {
    const RandomCall call = random_call(random);
    const auto most = std::uniform_int_distribution<int64_t>(2, 20)(random);
    const int64_t bytes = std::max(most * kKiB, 2 * call.smallest);
    run_ranks(1, [&](const CommunicatorPtr& comm) {
      const auto limited = memory::make_limited(kCpu, bytes + kSpare + call.expected.nbytes());
      const memory::ResourceScope scope(*limited);
      std::vector<Tensor> hogs;
      int64_t taken = 0;
      TiledOptions options = within(bytes);
      options.on_progress = [&](int64_t, int64_t) {
        const auto wanted = std::uniform_int_distribution<int64_t>(1, 8 * kKiB)(random);
        if (random() % 4 == 0) {
          hogs.clear();
          taken = 0;
        } else if (taken + wanted <= kSpare + bytes / 2) {
          try {
            hogs.push_back(empty({wanted}, DType::kUInt8));
            taken += wanted;
          } catch (const MemoryError&) {
            // They have to do without what a tile has.
          }
        }
      };
      const Tensor result = run_tiled(comm, with_copies(call.operation), call.inputs, options);
      const std::string what = cat("case ", i, ": ", options.report->plan.to_string());
      expect_close(real_or_none(result), as_real(call.expected), 1e-12, what);
      EXPECT_LE(options.report->peak, bytes) << what;
      halvings += options.report->halvings;
    });
  }
  EXPECT_GT(halvings, 20 / test::kCaseStep);
}

TEST(Tiled, OperandsOnANarrowWireTakeWhatIsPlanned) {
  const dist::Wire wire{.form = dist::Wire::Form::kNarrow, .dtype = DType::kFloat16};
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const Tensor a = host_noise({256, 256}, dtype), b = host_noise({256, 251}, dtype, 2);
    for (const int ranks : rank_counts()) {
      run_ranks(ranks, [&](const CommunicatorPtr& comm) {
        std::vector<Tensor> given(2);
        if (comm->rank() == 0) given = {a, b};
        const TiledOptions options = within(2400 * kKiB);
        run_tiled(comm, matmul_tiles(wire), given, options);
        const TiledReport& report = *options.report;
        EXPECT_LE(report.peak, report.plan.memory)
            << ranks << " ranks: " << report.plan.to_string();
        EXPECT_EQ(report.halvings, 0);
      });
    }
  }
}

TEST(Tiled, TellsHowFarItIs) {
  run_ranks(1, [](const CommunicatorPtr& comm) {
    std::vector<std::pair<int64_t, int64_t>> seen;
    TiledOptions options = within(2 * kKiB);
    options.on_progress = [&](int64_t done, int64_t all) { seen.emplace_back(done, all); };
    const Tensor x = host_noise({40, 20});
    run_tiled(comm, add_tiles(), {x, x}, options);
    ASSERT_GT(seen.size(), 3u);
    EXPECT_EQ(seen.back().first, seen.back().second);
    for (size_t i = 1; i < seen.size(); ++i) EXPECT_EQ(seen[i].first, seen[i - 1].first + 1);
  });
}

TEST(Tiled, AnInterruptEndsIt) {
  run_ranks(1, [](const CommunicatorPtr& comm) {
    std::atomic<bool> cancelled = false;
    const CancelScope scope(cancelled);
    TiledOptions options = within(2 * kKiB);
    options.on_progress = [&](int64_t done, int64_t) { cancelled = done >= 3; };
    const Tensor x = host_noise({100, 100});
    EXPECT_THROW(run_tiled(comm, add_tiles(), {x, x}, options), Interrupted);
  });
}

TEST(Tiled, AnInterruptEndsTheWorkOnATile) {
  run_ranks(1, [](const CommunicatorPtr& comm) {
    std::atomic<bool> cancelled = false;
    const CancelScope scope(cancelled);
    TileOperation endless = add_tiles();
    endless.describe = [&, plain = endless.describe](const std::vector<Header>& inputs) {
      Tiling tiling = plain(inputs);
      tiling.make = [&](const std::vector<Part>&, const Box&, Interval) -> Tensor {
        cancelled = true;
        for (;;) check_interrupt();
      };
      return tiling;
    };
    const Tensor x = host_noise({100, 100});
    EXPECT_THROW(run_tiled(comm, endless, {x, x}, within(2 * kKiB)), Interrupted);
  });
}

TEST(Tiled, WritesIntoWhatIsGiven) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const bool is_root = comm->rank() == 0;
    const Tensor x = is_root ? host_noise({9, 8}) : Tensor();
    const Tensor whole = is_root ? zeros({8, 20}, DType::kFloat64) : Tensor();
    const Tensor into = is_root ? transpose(slice(whole, 1, 3, 12)) : Tensor();
    const Tensor result = run_tiled(comm, add_tiles(), {x, x}, within(kKiB), into);
    if (!is_root) return;
    EXPECT_TRUE(is_same_view(result, into));
    expect_close(contiguous(into), cuop::add(x, x), 0, "into");
    EXPECT_EQ(values(whole)[0], 0.0);
  });
}

TEST(Tiled, ReadsAndWritesPageLockedArraysWhereTheyLie) {
  // Without a GPU there is nothing to lock pages for: the same views in ordinary memory.
  const auto locked = [](const Tensor& x) { return home().is_cpu() ? x : pin_memory(x, home()); };
  const Tensor a = locked(host_noise({700, 1000}));
  const Tensor b = locked(host_noise({900, 760}, DType::kFloat64, 2));
  const Tensor left = slice(a, 1, 100, 900), right = slice(b, 0, 3, 803);
  const Tensor expected = cuop::matmul(left, right);
  for (const int ranks : {1, 3}) {
    const Tensor whole = locked(full({700, 1000}, -1, DType::kFloat64));
    const Tensor into = slice(whole, 1, 150, 910);
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const bool is_root = comm->rank() == 0;
      const std::vector<Tensor> given = is_root ? std::vector{left, right} : std::vector<Tensor>(2);
      run_tiled(comm, matmul_tiles(), given, within(64 << 20), is_root ? into : Tensor());
    });
    expect_close(contiguous(into), expected, 1e-10, cat(ranks, " ranks"));
    const Tensor edge = slice(whole, 1, 0, 150);
    expect_close(contiguous(edge), full(edge.shape(), -1, DType::kFloat64), 0, "edge");
  }
}

TEST(Tiled, RefusesWhatCannotBe) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const bool is_root = comm->rank() == 0;
    const Tensor x = is_root ? host_noise({3, 4}) : Tensor();
    const auto failure = [&](const TileOperation& operation, const std::vector<Tensor>& inputs,
                             const TiledOptions& options) {
      return failure_of([&] { run_tiled(comm, operation, inputs, options); });
    };
    EXPECT_THAT(failure(matmul_tiles(), {x, x}, within(kKiB)), HasSubstr("do not fit"));
    EXPECT_THAT(failure(matmul_tiles(), {x, {}}, within(kKiB)), HasSubstr("b was not given"));
    EXPECT_THAT(failure(matmul_tiles(), {{}, x}, within(kKiB)), HasSubstr("a was not given"));
    EXPECT_THAT(failure(add_tiles(), {x, x}, within(0)), HasSubstr("must be above 0"));
    EXPECT_THAT(failure(add_tiles(), {x, x}, {{1.0, {}}, 1, {}, {}}), HasSubstr("safety margin"));
    EXPECT_THAT(failure(add_tiles(), {x, x}, within(is_root ? kKiB : 2 * kKiB)),
                HasSubstr("limit"));
  });
}

TEST(Tiled, AFailedRankEndsTheCallOnAll) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    TileOperation operation = add_tiles();
    if (comm->rank() == 1) {
      operation.describe = [plain = operation.describe](const std::vector<Header>& inputs) {
        Tiling tiling = plain(inputs);
        tiling.make = [](const std::vector<Part>&, const Box&, Interval) -> Tensor {
          throw ExecutionError("rank 1 is out of order");
        };
        return tiling;
      };
    }
    const Tensor x = comm->rank() == 0 ? host_noise({4000, 50}) : Tensor();
    EXPECT_THAT(failure_of([&] {
                  run_tiled(comm, operation, {x, x}, within(64 * kKiB));
                }),
                HasSubstr("rank 1 is out of order"));
  });
}

TEST(Devices, AreScannedOnEveryRank) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const std::vector<DeviceStatus> all = scan_devices(*comm, {0.25, std::nullopt});
    ASSERT_EQ(all.size(), 3u);
    for (int r = 0; r < 3; ++r) {
      const DeviceStatus& status = all[static_cast<size_t>(r)];
      EXPECT_EQ(status.rank, r);
      EXPECT_EQ(status.device.type, home().type);
      EXPECT_GT(status.usable, 0);
      EXPECT_LE(status.usable, status.free * 3 / 4);
      EXPECT_LE(status.free, status.total);
    }
  });
}

}  // namespace
}  // namespace cuop::executor
