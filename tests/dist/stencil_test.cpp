#include "cuop/dist/algo/stencil.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <numbers>

#include "cuop/core/text.h"
#include "cuop/dist/exec/report.h"
#include "cuop/dist/plan/stencil_plan.h"
#include "tests/dist/algo_test.h"

namespace cuop::dist {
namespace {

using ::testing::HasSubstr;
using namespace rank_test;  // NOLINT: the frame of these tests

TEST(HaloNeeds, WrapAroundSeveralTimesOrStopAtTheEdge) {
  HaloGrid grid{Sharding(Mesh::line(2), split_dim(2, 0)).owner_boxes({3, 4}), {3, 4}, 2, 5, false};
  const HaloNeeds zero = grid.needs();
  ASSERT_EQ(zero.needs.size(), 2u);  // rank 0 misses row 2 below, rank 1 rows 0 and 1 above
  EXPECT_EQ(zero.needs[0].box, (Box{{2, 0}, {3, 4}}));
  EXPECT_EQ(zero.place[0], (Dims{2 + 2, 0}));
  EXPECT_EQ(zero.needs[1].box, (Box{{0, 0}, {2, 4}}));
  EXPECT_EQ(zero.place[1], (Dims{0, 0}));
  // Seven rows above row 0 of a grid of 3: rows 2, 0 1 2, 0 1 2.
  grid = {{whole_box({3, 4})}, {3, 4}, 7, 5, true};
  const HaloNeeds wrapped = grid.needs();
  ASSERT_EQ(wrapped.needs.size(), 6u);
  EXPECT_EQ(wrapped.needs[0].box, (Box{{2, 0}, {3, 4}}));
  EXPECT_EQ(wrapped.needs[1].box, (Box{{0, 0}, {3, 4}}));
  EXPECT_EQ(wrapped.place[1], (Dims{1, 0}));
  EXPECT_EQ(wrapped.place[3], (Dims{7 + 3, 0}));
}

TEST(DistStencil, EqualsTheWholeGridBitForBit) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const Shape& shape : {Shape{1, 1}, Shape{3, 5}, Shape{13, 8}, Shape{6, 0}}) {
        for (const Shape& kernel_shape : {Shape{3, 3}, Shape{7, 1}, Shape{1, 5}, Shape{9, 3}}) {
          const Tensor grid = noise(shape);
          const Tensor kernel = noise(kernel_shape, DType::kFloat64, 2);
          for (const Boundary boundary : kBoundaries) {
            for (const int64_t iterations : {0, 1, 5}) {
              const Tensor expected = cuop::stencil2d(grid, kernel, boundary, iterations);
              for (const char* strategy : {"", "root", "row"}) {
                const Tensor result =
                    stencil_2d_from_root(comm, on_root(comm, grid), on_root(comm, kernel), boundary,
                                         iterations, {.strategy = strategy});
                expect_rooted(comm, result, expected, 0,
                              cat(shape, kernel_shape, static_cast<int>(boundary), ' ', iterations,
                                  ' ', strategy, ' ', ranks));
              }
            }
          }
        }
      }
    });
  }
}

TEST(DistStencil, FetchesADeepHaloOnceForSeveralSweeps) {
  run_ranks(3, [&](const CommunicatorPtr& comm) {
    const Tensor grid = noise({30, 7});
    const Tensor kernel = noise({3, 3}, DType::kFloat64, 2);
    const Sharding rows(Mesh::line(3), split_dim(2, 0));
    const Sharding whole = Sharding::replicated(Mesh::line(3));
    for (const Boundary boundary : kBoundaries) {
      const DistTensor result =
          stencil_2d(laid_out(comm, grid, rows), laid_out(comm, kernel, whole), boundary, 11,
                     {.strategy = "row", .machine = slow_wire()});
      EXPECT_EQ(last_report().plan.setting("depth"), 8);
      EXPECT_EQ(result.sharding(), rows);
      expect_close(gather_all(result), cuop::stencil2d(grid, kernel, boundary, 11), 0, "deep");
    }
  });
}

TEST(DistJacobi, ThePlanCountsEverySweep) {
  const Tensor start = noise({9, 6}), rhs = noise({9, 6}, DType::kFloat64, 3);
  run_ranks(2, [&](const CommunicatorPtr& comm) {
    for (const int64_t iterations : {1, 40}) {
      JacobiOptions options;
      options.iterations = iterations;
      jacobi_2d_from_root(comm, on_root(comm, start), on_root(comm, rhs), options, nullptr,
                          {.strategy = "row"});
      EXPECT_THAT(last_report().plan.explain(), HasSubstr(cat(" ", iterations, " sweeps over")));
    }
  });
}

TEST(DistJacobi, SweepsAndStopsAlikeOnAnyNumberOfRanks) {
  for (const Boundary boundary : kBoundaries) {
    const Tensor rhs = noise({9, 6}, DType::kFloat64, 3);
    const Tensor start = noise({9, 6});
    JacobiOptions options;
    options.boundary = boundary;
    options.iterations = 60;
    options.tolerance = 0.05;
    options.dx = 0.5;
    const JacobiResult expected = cuop::jacobi2d(start, rhs, options);
    for (const int ranks : rank_counts()) {
      run_ranks(ranks, [&](const CommunicatorPtr& comm) {
        for (const char* strategy : {"", "root", "row"}) {
          SolveInfo info;
          const Tensor u = jacobi_2d_from_root(comm, on_root(comm, start), on_root(comm, rhs),
                                               options, &info, {.strategy = strategy});
          expect_rooted(comm, u, expected.u, 0, cat(strategy, ' ', ranks));
          EXPECT_EQ(info.sweeps, expected.sweeps);
          EXPECT_EQ(info.update_norm, expected.update_norm);
          EXPECT_NEAR(info.residual_norm, expected.residual_norm, 1e-12);
        }
      });
    }
  }
}

TEST(DistJacobi, SeveralSweepsAHaloStopAtTheSameOne) {
  for (const Boundary boundary : kBoundaries) {
    const Tensor rhs = noise({31, 7}, DType::kFloat64, 3), start = noise({31, 7});
    // Converged in the middle of a halo's sweeps, at its last one, at none; and not looked at.
    for (const double tolerance : {0.9, 0.4, 0.25, 1e-9, 0.0}) {
      for (const int64_t iterations : {0, 1, 21}) {
        JacobiOptions options{0.5, boundary, iterations, tolerance};
        const JacobiResult expected = cuop::jacobi2d(start, rhs, options);
        for (const int ranks : {1, 2, 3, 7}) {
          run_ranks(ranks, [&](const CommunicatorPtr& comm) {
            for (const char* strategy : {"row", "root"}) {
              SolveInfo info;
              const Tensor u =
                  jacobi_2d_from_root(comm, on_root(comm, start), on_root(comm, rhs), options,
                                      &info, {.strategy = strategy, .machine = slow_wire()});
              const std::string what = cat(strategy, ' ', ranks, " ranks, tolerance ", tolerance);
              if (iterations == 21 && tolerance > 0) {
                EXPECT_GT(last_report().plan.setting("depth"), 1) << what;
              }
              expect_rooted(comm, u, expected.u, 0, what);
              EXPECT_EQ(info.sweeps, expected.sweeps) << what;
              EXPECT_EQ(info.update_norm, expected.update_norm) << what;
              EXPECT_NEAR(info.residual_norm, expected.residual_norm, 1e-12) << what;
            }
          });
        }
      }
    }
  }
}

TEST(DistJacobi, AnySweepMayBeTheLast) {
  // In batches of 32 sweeps, of which GPUs begin the next before one is looked at.
  const Tensor rhs = noise({19, 5}, DType::kFloat64, 3), start = noise({19, 5});
  const Sharding rows(Mesh::line(3), split_dim(2, 0));
  run_ranks(3, [&](const CommunicatorPtr& comm) {
    const DistTensor u = laid_out(comm, start, rows), f = laid_out(comm, rhs, rows);
    for (const int64_t last : {1, 2, 31, 32, 33, 63, 64, 65, 80}) {
      JacobiOptions options{0.5, Boundary::kZero, last, 0.0};
      const JacobiResult expected = cuop::jacobi2d(start, rhs, options);
      // The first norm below this one, as they fall from sweep to sweep.
      options = {0.5, Boundary::kZero, 80, std::nextafter(expected.update_norm, 1e9)};
      SolveInfo info;
      const DistTensor result =
          jacobi_2d(u, f, options, &info, {.strategy = "row", .machine = slow_wire()});
      EXPECT_EQ(last_report().plan.setting("depth"), 32);
      EXPECT_EQ(info.sweeps, last);
      EXPECT_NEAR(info.update_norm, expected.update_norm, 1e-13 * expected.update_norm);
      expect_close(gather_all(result), expected.u, 0, cat(last, " sweeps"));
    }
  });
}

TEST(DistPoisson, InvertsTheLaplacian) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const Shape& shape : {Shape{1, 1}, Shape{4, 7}, Shape{12, 12}, Shape{2, 1}}) {
        for (const Boundary boundary : kBoundaries) {
          const Tensor u = noise(shape);
          const Tensor laplacian =
              from_values<double>({3, 3}, std::span<const double>(kLaplacian5pt));
          JacobiOptions options;
          options.boundary = boundary;
          const Tensor rhs = cuop::stencil2d(u, laplacian, boundary);
          for (const char* strategy : {"root", "pencil"}) {
            SolveInfo info;
            const Tensor solved = poisson_2d_from_root(comm, on_root(comm, u), on_root(comm, rhs),
                                                       options, &info, {.strategy = strategy});
            expect_rooted(comm, solved, u, 1e-11, cat(shape, static_cast<int>(boundary), strategy));
            EXPECT_LT(info.residual_norm, 1e-10);
          }
        }
      }
    });
  }
}

TEST(DistPoisson, ScalesWithTheSpacing) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const Tensor rhs = noise({6, 5});
    JacobiOptions options;
    options.dx = 0.25;
    SolveInfo info;
    poisson_2d_from_root(comm, on_root(comm, zeros({6, 5}, DType::kFloat64)), on_root(comm, rhs),
                         options, &info);
    EXPECT_LT(info.residual_norm, 1e-11);
    // In shards the solution stays in rows.
    const Sharding rows(Mesh::line(2), split_dim(2, 0));
    const DistTensor f = laid_out(comm, cast(rhs, DType::kFloat32), rows);
    EXPECT_EQ(poisson_2d(f, f, options, &info).sharding(), rows);
    EXPECT_LT(info.residual_norm, 1e-3);
  });
}

TEST(DistStencil, FailsOnEveryRankAndGoesOn) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const Tensor grid = on_root(comm, noise({4, 4}));
    EXPECT_THAT(failure_of([&] { stencil_2d_from_root(comm, grid, Tensor()); }),
                HasSubstr("the kernel was not given"));
    EXPECT_THAT(failure_of([&] {
                  stencil_2d_from_root(comm, grid, on_root(comm, noise({2, 3})));
                }),
                HasSubstr("the kernel has shape (2, 3)"));
    EXPECT_THAT(
        failure_of([&] {
          stencil_2d_from_root(comm, grid, on_root(comm, noise({3, 3})), Boundary::kZero, -1);
        }),
        HasSubstr("-1 iterations"));
    EXPECT_THAT(failure_of([&] {
                  jacobi_2d_from_root(comm, grid, on_root(comm, noise({4, 3})));
                }),
                HasSubstr("grid (4, 4) and rhs (4, 3)"));
    JacobiOptions options;
    options.dx = 0.0;
    EXPECT_THAT(failure_of([&] { poisson_2d_from_root(comm, grid, grid, options); }),
                HasSubstr("dx must be above 0"));
    EXPECT_EQ(failure_of([&] { jacobi_2d_from_root(comm, grid, grid); }), "");
  });
}

}  // namespace
}  // namespace cuop::dist
