// The same bits on any number of ranks, joined in any way, on hosts and on GPUs.
#include "cuop/dist/exec/report.h"
#include "tests/dist/poisson_norms.h"
#include "tests/dist/socket_ranks.h"

namespace cuop::dist {
namespace {

using namespace rank_test;

TEST(PoissonBits, TheBitsDoNotDependOnTheRanks) {
  const Shape shape = is_slow() ? Shape{13, 6} : Shape{45, 31};
  const Tensor grid = noise(shape), rhs = noise(shape, DType::kFloat64, 3);
  for (const PoissonBoundary boundary : kPoissonBoundaries) {
    for (const PoissonMethod method :
         {PoissonMethod::kRedBlackSor, PoissonMethod::kMultigrid, PoissonMethod::kCg}) {
      if (is_slow() && boundary == PoissonBoundary::kDirichlet) continue;
      const PoissonOptions options{0.5, boundary, method, is_slow() ? 6 : 20, 1e-9};
      Tensor first;
      SolveInfo first_info;
      for (const int ranks : rank_counts()) {
        run_ranks(ranks, [&](const CommunicatorPtr& comm) {
          const std::string what = label(options, shape, ranks);
          SolveInfo info;
          const Machine machine = ranks == 2 ? Machine() : fast_wire();
          const Tensor u =
              solve_poisson_2d_from_root(comm, on_root(comm, grid), on_root(comm, rhs), options,
                                         &info, {.strategy = "row", .machine = machine});
          EXPECT_EQ(last_report().plan.setting("shared_cells") > 0, ranks == 2);
          if (ranks == 1) {
            first = u;
            first_info = info;
            return;
          }
          expect_rooted(comm, u, first, 0, what);
          EXPECT_EQ(info.sweeps, first_info.sweeps) << what;
          EXPECT_EQ(info.residual_norm, first_info.residual_norm) << what;
          EXPECT_EQ(info.dropped_mean, first_info.dropped_mean) << what;
        });
      }
    }
  }
}

TEST(PoissonBits, RanksJoinedBySocketsSolveAlike) {
  const Shape shape{23, 9};
  const Tensor grid = noise(shape), rhs = noise(shape, DType::kFloat64, 3);
  for (const PoissonMethod method : {PoissonMethod::kCg, PoissonMethod::kMultigrid}) {
    const PoissonOptions options{0.5, PoissonBoundary::kPeriodic, method, 8, 1e-9};
    Tensor expected;
    run_ranks(1, [&](const CommunicatorPtr& comm) {
      expected = to_device(
          solve_poisson_2d_from_root(comm, grid, rhs, options, nullptr, {.strategy = "row"}), kCpu);
    });
    rank_test::run_socket_ranks(2, [&](const CommunicatorPtr& comm) {
      take_own_device(comm->rank());
      const auto laid = [&](const Tensor& whole) {
        return laid_out(comm, to_device(whole, home()), Sharding(Mesh::line(2), split_dim(2, 0)));
      };
      const DistTensor u = solve_poisson_2d(laid(grid), laid(rhs), options);
      EXPECT_EQ(values(gather_all(u)), values(expected)) << label(options, shape, 2);
    });
  }
}

}  // namespace
}  // namespace cuop::dist
