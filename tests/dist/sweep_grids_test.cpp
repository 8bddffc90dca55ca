// Sweeps over grids that are cut into blocks of columns, or of rows and columns, give the bits of
// one rank.
#include <gtest/gtest.h>

#include <cmath>

#include "cuop/backend/current_device.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/text.h"
#include "cuop/dist/algo/stencil.h"
#include "cuop/dist/exec/norms.h"
#include "cuop/dist/exec/report.h"
#include "tests/dist/algo_test.h"
#include "tests/dist/socket_ranks.h"

namespace cuop::dist {
namespace {

using namespace rank_test;  // NOLINT: the frame of these tests

constexpr const char* kStrategies[] = {"row", "column", "block_2d"};

/// Norms of GPUs depend on how many sweeps a pass makes.
void expect_same_norm(double given, double expected, const std::string& what) {
  if (home().is_cpu()) {
    EXPECT_EQ(given, expected) << what;
  } else {
    EXPECT_NEAR(given, expected, 1e-12 * expected) << what;
  }
}

TEST(SweepGrids, StencilsOfAnyCutHaveTheBitsOfOneRank) {
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 2}, Shape{2, 29}, Shape{23, 17}, Shape{0, 6}}) {
    for (const Shape& kernel_shape : {Shape{3, 3}, Shape{1, 5}, Shape{9, 3}}) {
      const Tensor grid = noise(shape), kernel = noise(kernel_shape, DType::kFloat64, 2);
      for (const Boundary boundary : kBoundaries) {
        for (const int64_t iterations : {1, 11}) {  // of 11 the halo is fetched twice: 8 and 3
          if (is_slow() && (iterations == 1 || kernel_shape[0] == 9)) continue;
          const Tensor expected = cuop::stencil2d(grid, kernel, boundary, iterations);
          for (const int ranks : rank_counts()) {
            run_ranks(ranks, [&](const CommunicatorPtr& comm) {
              for (const char* strategy : kStrategies) {
                const Tensor result = stencil_2d_from_root(
                    comm, on_root(comm, grid), on_root(comm, kernel), boundary, iterations,
                    {.strategy = strategy, .machine = slow_wire()});
                if (iterations > 1 && ranks > 1 && shape[0] == 23 && kernel_shape[0] == 3) {
                  EXPECT_EQ(last_report().plan.setting("depth"), 8);
                }
                expect_rooted(comm, result, expected, 0,
                              cat(shape, kernel_shape, static_cast<int>(boundary), " times ",
                                  iterations, ' ', strategy, ' ', ranks));
              }
            });
          }
        }
      }
    }
  }
}

TEST(SweepGrids, StencilsOfEveryDtype) {
  run_ranks(4, [](const CommunicatorPtr& comm) {
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
      const Tensor grid = noise({14, 37}, dtype), kernel = noise({3, 3}, dtype, 2);
      for (const Boundary boundary : kBoundaries) {
        const Tensor expected = cuop::stencil2d(grid, kernel, boundary, 5);
        const Tensor result =
            stencil_2d_from_root(comm, on_root(comm, grid), on_root(comm, kernel), boundary, 5,
                                 {.strategy = "block_2d", .machine = slow_wire()});
        expect_rooted(comm, result, expected, 0, cat(dtype));
      }
    }
  });
}

/// Blocks that no strategy would make: of other sizes, empty ones, in another order than the ranks.
std::vector<Sharding> odd_blocks() {
  using Axes = Spec::Axes;
  const Mesh line = Mesh::line(4), mesh({2, 2}, {"a", "b"});
  const Sharding columns(line, split_dim(2, 1)), both(mesh, P(Axes{"b"}, Axes{"a"}));
  return {columns.with_blocks(1, {9, 0, 1, 11}),
          Sharding(line, split_dim(2, 0)).with_blocks(0, {7, 1, 0, 5}), both,
          both.with_blocks(0, {2, 11}).with_blocks(1, {20, 1}),
          Sharding(mesh, P(Axes{"b", "a"}, Axes{}))};
}

TEST(SweepGrids, ASweptGridStaysWhereItLies) {
  Machine thin_wire;  // to move the grid would cost more than all halos
  thin_wire.link_bandwidth = 1.0;
  const Tensor grid = noise({13, 21}), kernel = noise({3, 3}, DType::kFloat64, 2);
  run_ranks(4, [&](const CommunicatorPtr& comm) {
    const Sharding everywhere = Sharding::replicated(Mesh::line(4));
    for (const Sharding& blocks : odd_blocks()) {
      const DistTensor x = laid_out(comm, grid, blocks);
      for (const Boundary boundary : kBoundaries) {
        const DistTensor result =
            stencil_2d(x, laid_out(comm, kernel, everywhere), boundary, 3, {.machine = thin_wire});
        EXPECT_EQ(result.sharding(), blocks) << last_report().plan.explain();
        expect_close(gather_all(result), cuop::stencil2d(grid, kernel, boundary, 3), 0,
                     cat(blocks));
      }
      for (const int64_t iterations : {1, 2, 6, 9}) {
        const JacobiOptions options{0.5, Boundary::kPeriodic, iterations, 0.0};
        const JacobiResult solved = cuop::jacobi2d(grid, grid, options);
        SolveInfo info;
        const DistTensor u = jacobi_2d(x, x, options, &info, {.machine = thin_wire});
        expect_close(gather_all(u), solved.u, 0, cat(blocks));
        expect_same_norm(info.update_norm, solved.update_norm, cat(blocks));
        EXPECT_NEAR(info.residual_norm, solved.residual_norm, 1e-12) << blocks;
      }
    }
  });
}

TEST(SweepGrids, ReplicasAreNotSweptTwice) {
  const Tensor grid = noise({6, 8});
  const JacobiOptions options{1.0, Boundary::kZero, 3, 0.0};
  const JacobiResult expected = cuop::jacobi2d(grid, grid, options);
  run_ranks(4, [&](const CommunicatorPtr& comm) {
    const Sharding twice(Mesh({2, 2}, {"a", "b"}), P(Spec::Axes{}, Spec::Axes{"b"}));
    const DistTensor x = laid_out(comm, grid, twice);
    SolveInfo info;
    const DistTensor u = jacobi_2d(x, x, options, &info);
    expect_close(gather_all(u), expected.u, 0, "replicas");
    expect_same_norm(info.update_norm, expected.update_norm, "replicas");
  });
}

TEST(SweepGrids, JacobiStopsAtTheSameSweepOfAnyCut) {
  for (const Shape& shape : {Shape{11, 31}, Shape{2, 19}, Shape{17, 1}}) {
    if (is_slow() && shape[0] == 17) continue;
    const Tensor rhs = noise(shape, DType::kFloat64, 3), start = noise(shape);
    for (const Boundary boundary : kBoundaries) {
      // Converged in the middle of a halo's sweeps, in the next batch, at none; and not looked at.
      for (const double tolerance : {0.6, 0.2, 1e-9, 0.0}) {
        if (is_slow() && tolerance == 1e-9) continue;
        const JacobiOptions options{0.5, boundary, 21, tolerance};
        const JacobiResult expected = cuop::jacobi2d(start, rhs, options);
        for (const int ranks : rank_counts()) {
          run_ranks(ranks, [&](const CommunicatorPtr& comm) {
            double residual = -1.0;
            for (const char* strategy : kStrategies) {
              SolveInfo info;
              const Tensor u =
                  jacobi_2d_from_root(comm, on_root(comm, start), on_root(comm, rhs), options,
                                      &info, {.strategy = strategy, .machine = slow_wire()});
              const std::string what = cat(shape, ' ', strategy, ' ', ranks, " ranks, ", tolerance);
              EXPECT_EQ(last_report().plan.strategy, strategy);
              expect_rooted(comm, u, expected.u, 0, what);
              EXPECT_EQ(info.sweeps, expected.sweeps) << what;
              expect_same_norm(info.update_norm, expected.update_norm, what);
              EXPECT_NEAR(info.residual_norm, expected.residual_norm, 1e-12) << what;
              if (residual < 0.0) residual = info.residual_norm;
              EXPECT_EQ(info.residual_norm, residual) << what;  // the bits of blocks of rows
            }
          });
        }
      }
    }
  }
}

TEST(NormReduction, AddsInTheOrderOfRowsWhoeverHasThem) {
  // 1e16 + 1 is 1e16 again, so a hundred rows of 1 count only where they come before the first row.
  const std::vector<Box> blocks = {{{1, 0}, {101, 4}}, {{0, 0}, {0, 4}}, {{0, 0}, {1, 4}}};
  run_ranks(3, [&](const CommunicatorPtr& comm) {
    const int64_t rows = blocks[static_cast<size_t>(comm->rank())].interval(0).length();
    const auto squares = [&](double of_first) {
      return full({2, rows}, comm->rank() == 2 ? of_first : 1.0, DType::kFloat64, home());
    };
    NormReduction first(*comm, blocks, home()), second(*comm, blocks, home());
    first.start(squares(1e16));
    second.start(squares(1.0));
    EXPECT_EQ(first.wait(), std::vector<double>(2, 1e8));
    first.start(slice(squares(44.0), 0, 0, 1));
    EXPECT_EQ(second.wait(), std::vector<double>(2, std::sqrt(101.0)));
    EXPECT_EQ(first.wait(), std::vector<double>(1, 12.0));
    EXPECT_EQ(norms_of_rows(*comm, squares(300.0), blocks), std::vector<double>(2, 20.0));
  });
}

TEST(SweepGrids, OverlappedHalosOfColumnsGiveTheBitsOfOneRank) {
  Machine slow_link;
  slow_link.link_bandwidth = 1e2;
  slow_link.latency = slow_link.message_overhead = 1e-9;
  slow_link.memory_bandwidth = 1e6;
  // Simulated GPUs are slow: not all of both.
  for (const auto& [dtype, ranks, strategy] :
       {std::tuple{DType::kFloat32, 2, "column"}, {DType::kFloat64, 4, "block_2d"}}) {
    const Tensor start = noise({37, 1301}, dtype), rhs = noise({37, 1301}, dtype, 3);
    const Tensor kernel = noise({3, 3}, dtype, 2);
    for (const Boundary boundary : kBoundaries) {
      const Tensor expected = cuop::stencil2d(start, kernel, boundary, 11);
      JacobiOptions options{0.5, boundary, 7, 0.0};  // ends in the middle of a batch
      options.tolerance = 1.0001 * cuop::jacobi2d(start, rhs, options).update_norm;
      options.iterations = 12;
      const JacobiResult solved = cuop::jacobi2d(start, rhs, options);
      ASSERT_EQ(solved.sweeps, 7);
      const CallOptions call{.strategy = strategy, .machine = slow_link};
      const std::string what = cat(strategy, ' ', dtype, ' ', static_cast<int>(boundary));
      run_ranks(ranks, [&](const CommunicatorPtr& comm) {
        const Tensor result = stencil_2d_from_root(comm, on_root(comm, start),
                                                   on_root(comm, kernel), boundary, 11, call);
        EXPECT_EQ(last_report().plan.setting("overlap"), 1) << last_report().plan.explain();
        expect_rooted(comm, result, expected, 0, what);
        SolveInfo info;
        const Tensor u = jacobi_2d_from_root(comm, on_root(comm, start), on_root(comm, rhs),
                                             options, &info, call);
        EXPECT_EQ(last_report().plan.setting("overlap"), 1) << last_report().plan.explain();
        expect_rooted(comm, u, solved.u, 0, what);
        EXPECT_EQ(info.sweeps, solved.sweeps) << what;
        expect_same_norm(info.update_norm, solved.update_norm, what);
      });
    }
  }
}

TEST(SweepGrids, OverlappedHalosGiveTheBitsOfOneRank) {
  Machine slow_link;  // of short messages
  slow_link.link_bandwidth = 1e3;
  slow_link.latency = slow_link.message_overhead = 1e-9;
  const Tensor start = noise({91, 6}), rhs = noise({91, 6}, DType::kFloat64, 3);
  const Tensor kernel = noise({3, 3}, DType::kFloat64, 2);
  for (const Boundary boundary : kBoundaries) {
    const Tensor expected = cuop::stencil2d(start, kernel, boundary, 11);
    const JacobiOptions options{0.5, boundary, 40, 0.4};
    const JacobiResult solved = cuop::jacobi2d(start, rhs, options);
    for (const int ranks : {1, 2, 3}) {
      run_ranks(ranks, [&](const CommunicatorPtr& comm) {
        const CallOptions call{.strategy = "row", .machine = slow_link};
        const std::string what = cat(ranks, " ranks, ", static_cast<int>(boundary));
        const auto expect_overlapped = [] {  // a plain process works on all GPUs
          const Plan& plan = last_report().plan;
          EXPECT_EQ(plan.setting("overlap"), plan.ranks > 1) << plan.explain();
        };
        const Tensor result = stencil_2d_from_root(comm, on_root(comm, start),
                                                   on_root(comm, kernel), boundary, 11, call);
        expect_overlapped();
        expect_rooted(comm, result, expected, 0, what);
        SolveInfo info;
        const Tensor u = jacobi_2d_from_root(comm, on_root(comm, start), on_root(comm, rhs),
                                             options, &info, call);
        expect_overlapped();
        expect_rooted(comm, u, solved.u, 0, what);
        EXPECT_EQ(info.sweeps, solved.sweeps) << what;
        expect_same_norm(info.update_norm, solved.update_norm, what);
      });
    }
  }
}

TEST(SweepGrids, AGridWithoutCellsHasNoNorms) {
  for (const int ranks : {1, 3}) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const Shape& shape : {Shape{0, 5}, Shape{6, 0}}) {
        for (const char* strategy : kStrategies) {
          const Tensor grid = noise(shape);
          SolveInfo info;
          const Tensor u = jacobi_2d_from_root(comm, on_root(comm, grid), on_root(comm, grid),
                                               {1.0, Boundary::kPeriodic, 20, 0.5}, &info,
                                               {.strategy = strategy, .machine = slow_wire()});
          expect_rooted(comm, u, grid, 0, strategy);
          EXPECT_EQ(info.update_norm, 0.0);
          EXPECT_EQ(info.residual_norm, 0.0);
        }
      }
    });
  }
}

TEST(SweepGrids, RanksJoinedBySocketsSweepAlike) {
  Machine slow;  // so slow that long halos are worth two launches more
  slow.link_bandwidth = 1e4;
  slow.latency = slow.message_overhead = 1e-6;
  slow.memory_bandwidth = 1e6;
  const Tensor start = noise({91, 6}), rhs = noise({91, 6}, DType::kFloat64, 3);
  const Tensor kernel = noise({3, 3}, DType::kFloat64, 2);
  const Tensor swept = cuop::stencil2d(start, kernel, Boundary::kPeriodic, 11);
  const JacobiOptions options{0.5, Boundary::kZero, 40, 0.4};
  const JacobiResult solved = cuop::jacobi2d(start, rhs, options);
  for (const int ranks : {2, 3}) {
    rank_test::run_socket_ranks(ranks, [&](const CommunicatorPtr& comm) {
      take_own_device(comm->rank());
      const Sharding rows(Mesh::line(ranks), split_dim(2, 0));
      const auto laid = [&](const Tensor& whole, const Sharding& sharding) {
        return laid_out(comm, to_device(whole, home()), sharding);
      };
      for (const char* strategy : {"row", "column"}) {
        const CallOptions call{.strategy = strategy, .machine = slow};
        const bool is_row = std::string_view(strategy) == "row";
        const DistTensor result =
            stencil_2d(laid(start, rows), laid(kernel, Sharding::replicated(Mesh::line(ranks))),
                       Boundary::kPeriodic, 11, call);
        EXPECT_EQ(last_report().plan.setting("overlap"), is_row ? 1 : 0)
            << last_report().plan.explain();
        expect_close(gather_all(result), swept, 0, strategy);
        SolveInfo info;
        const DistTensor u = jacobi_2d(laid(start, rows), laid(rhs, rows), options, &info, call);
        EXPECT_EQ(last_report().plan.setting("overlap"), is_row ? 1 : 0);
        expect_close(gather_all(u), solved.u, 0, strategy);
        EXPECT_EQ(info.sweeps, solved.sweeps);
        expect_same_norm(info.update_norm, solved.update_norm, strategy);
      }
    });
  }
}

TEST(SweepGrids, AnUnknownStrategyIsSaid) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const Tensor grid = on_root(comm, noise({4, 4}));
    const std::string wrong = failure_of(
        [&] { jacobi_2d_from_root(comm, grid, grid, {}, nullptr, {.strategy = "disc"}); });
    EXPECT_NE(
        wrong.find("there is no strategy \"disc\"; possible here are block_2d, column, root, row"),
        std::string::npos)
        << wrong;
  });
}

}  // namespace
}  // namespace cuop::dist
