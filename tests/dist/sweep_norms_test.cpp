// When a solver of several ranks stops, to the last bit of a norm. Norms of GPUs depend on how many
// sweeps a pass makes.
#include <gtest/gtest.h>

#include <cmath>

#include "cuop/core/text.h"
#include "cuop/dist/algo/stencil.h"
#include "tests/dist/algo_test.h"

namespace cuop::dist {
namespace {

using namespace rank_test;  // NOLINT: the frame of these tests

TEST(SweepGrids, ATolerancePreciselyAtANormDecidesAsOnOneRank) {
  const Tensor rhs = noise({23, 37}, DType::kFloat64, 3), start = noise({23, 37});
  for (const int64_t sweep : {1, 5, 8, 13}) {
    JacobiOptions options{0.5, Boundary::kZero, sweep, 0.0};
    const double norm = cuop::jacobi2d(start, rhs, options).update_norm;
    for (const double tolerance : {norm, std::nextafter(norm, 1e9), norm * (1.0 + 1e-12)}) {
      options = {0.5, Boundary::kZero, 30, tolerance};
      const JacobiResult expected = cuop::jacobi2d(start, rhs, options);
      EXPECT_EQ(expected.sweeps, tolerance > norm ? sweep : sweep + 1);
      for (const int ranks : {3, 4}) {
        run_ranks(ranks, [&](const CommunicatorPtr& comm) {
          for (const char* strategy : {"row", "column", "block_2d"}) {
            SolveInfo info;
            const Tensor u =
                jacobi_2d_from_root(comm, on_root(comm, start), on_root(comm, rhs), options, &info,
                                    {.strategy = strategy, .machine = slow_wire()});
            const std::string what = cat(strategy, ' ', ranks, " ranks, sweep ", sweep);
            EXPECT_EQ(info.sweeps, expected.sweeps) << what;
            EXPECT_EQ(info.update_norm, expected.update_norm) << what;
            expect_rooted(comm, u, expected.u, 0, what);
          }
        });
      }
    }
  }
}

}  // namespace
}  // namespace cuop::dist
