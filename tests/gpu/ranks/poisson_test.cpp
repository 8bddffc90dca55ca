// The same bits on GPUs as on the host, and of both together.
#include "tests/dist/poisson_norms.h"

namespace cuop::dist {
namespace {

using namespace rank_test;

TEST(PoissonBits, GpusHaveTheBitsOfTheCpu) {
  const Shape shape{9, 14};
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const Tensor grid = noise(shape, dtype), rhs = noise(shape, dtype, 3);
    for (const PoissonBoundary boundary : kPoissonBoundaries) {
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

}  // namespace
}  // namespace cuop::dist
