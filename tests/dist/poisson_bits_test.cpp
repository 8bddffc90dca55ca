// The same bits on any number of ranks, joined in any way, on hosts and on GPUs.
#include "cuop/backend/runtime.h"
#include "cuop/dist/exec/report.h"
#include "tests/dist/poisson_norms.h"
#include "tests/dist/socket_ranks.h"

namespace cuop::dist {
namespace {

using namespace testing;

TEST(PoissonBits, TheBitsDoNotDependOnTheRanks) {
  const Shape shape = home().is_cpu() ? Shape{45, 31} : Shape{13, 6};
  const Tensor grid = noise(shape), rhs = noise(shape, DType::kFloat64, 3);
  for (const PoissonBoundary boundary : kBoundaries) {
    for (const PoissonMethod method :
         {PoissonMethod::kRedBlackSor, PoissonMethod::kMultigrid, PoissonMethod::kCg}) {
      const bool is_on_cpu = home().is_cpu();  // simulated GPUs are slow
      if (!is_on_cpu && boundary == PoissonBoundary::kDirichlet) continue;
      const PoissonOptions options{0.5, boundary, method, is_on_cpu ? 20 : 6, 1e-9};
      Tensor first;
      SolveInfo first_info;
      for (const int ranks : kRanks) {
        if (!is_on_cpu && ranks != 1 && ranks != 3) continue;
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
    test::run_socket_ranks(2, [&](const CommunicatorPtr& comm) {
#ifdef CUOP_RANKS_ON_GPUS
      const int device = comm->rank() % backend::device_count(DeviceType::kCuda);
      backend::set_current_device({DeviceType::kCuda, device});
#endif
      const auto laid = [&](const Tensor& whole) {
        return laid_out(comm, to_device(whole, home()), Sharding(Mesh::line(2), split_dim(2, 0)));
      };
      const DistTensor u = solve_poisson_2d(laid(grid), laid(rhs), options);
      EXPECT_EQ(values(gather_all(u)), values(expected)) << label(options, shape, 2);
    });
  }
}

#ifdef CUOP_RANKS_ON_GPUS
TEST(PoissonBits, GpusHaveTheBitsOfTheCpu) {
  const Shape shape{9, 14};
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const Tensor grid = noise(shape, dtype), rhs = noise(shape, dtype, 3);
    for (const PoissonBoundary boundary : kBoundaries) {
      for (const PoissonMethod method : {PoissonMethod::kRedBlackSor, PoissonMethod::kMultigrid}) {
        run_ranks(1, [&](const CommunicatorPtr& comm) {
          // Without a tolerance, as sums of squares are made in another order there.
          const PoissonOptions options{0.5, boundary, method, 2, 0.0};
          const Tensor there =
              solve_poisson_2d_from_root(comm, grid, rhs, options, nullptr, {.strategy = "row"});
          const Tensor here =
              solve_poisson_2d_from_root(comm, to_device(grid, kCpu), to_device(rhs, kCpu), options,
                                         nullptr, {.strategy = "row"});
          EXPECT_EQ(values(there), values(here)) << label(options, shape, 1);
        });
      }
    }
  }
}
TEST(PoissonBits, SomeOnGpusAndSomeOnTheHostSolveTogether) {
  const Tensor rhs = to_device(noise({21, 6}), kCpu);
  for (const PoissonMethod method :
       {PoissonMethod::kRedBlackSor, PoissonMethod::kMultigrid, PoissonMethod::kDirect}) {
    const PoissonOptions options{0.5, PoissonBoundary::kNeumann, method, 4, 0.0};
    Tensor expected;
    run_ranks(1, [&](const CommunicatorPtr& comm) {
      expected = solve_poisson_2d_from_root(comm, rhs, rhs, options);
    });
    run_ranks(3, [&](const CommunicatorPtr& comm) {
      const Tensor mine = slice(rhs, 0, 7 * comm->rank(), 7 * comm->rank() + 7);
      const Tensor part = comm->rank() == 1 ? mine : to_device(mine, home());
      const DistTensor f = DistTensor::from_parts(comm, part);
      const DistTensor u = solve_poisson_2d(f, f, options);
      EXPECT_EQ(u.device(), part.device());
      const bool is_direct = method == PoissonMethod::kDirect;
      expect_close(to_device(gather_all(u), kCpu), expected, is_direct ? 1e-13 : 1e-15,
                   label(options, rhs.shape(), 3));
    });
  }
}
#endif

}  // namespace
}  // namespace cuop::dist
