// How much a cycle of multigrid is worth.
#include "tests/dist/poisson_norms.h"

namespace cuop::dist {
namespace {

using namespace rank_test;

TEST(Poisson, ACycleOfMultigridReducesTheResidualSevenfold) {
  for (const Shape& shape : {Shape{33, 33}, Shape{64, 64}, Shape{97, 97}, Shape{100, 199},
                             Shape{3, 500}, Shape{1, 257}, Shape{17, 130}}) {
    if (is_slow() && element_count(shape) > 2000) continue;
    const Tensor grid = zeros(shape, DType::kFloat64), rhs = noise(shape);
    for (const PoissonBoundary boundary : kPoissonBoundaries) {
      run_ranks(1, [&](const CommunicatorPtr& comm) {
        PoissonOptions options{1.0, boundary, PoissonMethod::kMultigrid, 30, 1e-10};
        SolveInfo info;
        solve_poisson_2d_from_root(comm, grid, rhs, options, &info);
        EXPECT_LE(info.sweeps, 12) << label(options, shape, 1);
        double before = norms_of(grid, grid, rhs, options).residual;
        options.tolerance = 0.0;
        Tensor u = grid;
        options.iterations = 1;
        for (int cycle = 0; cycle < 5; ++cycle) {
          u = solve_poisson_2d_from_root(comm, u, rhs, options);
          const double now = norms_of(u, grid, rhs, options).residual;
          EXPECT_LE(now, 0.15 * before) << label(options, shape, 1) << ", cycle " << cycle;
          before = now;
        }
      });
    }
  }
}

}  // namespace
}  // namespace cuop::dist
