// A block with its halo, swept in parts while the halo is on its way.
#include <gtest/gtest.h>

#include <algorithm>

#include "cuop/core/text.h"
#include "cuop/dist/exec/redistribute.h"
#include "cuop/dist/exec/sweep.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/stencil/stencil.h"
#include "tests/dist/algo_test.h"

namespace cuop::dist {
namespace {

using namespace rank_test;  // NOLINT: the frame of these tests

TEST(SweptBlock, ComputesWhatNeedsNoHaloWhileThatIsOnItsWay) {
  // Of 10 rows each; a sweep moves all by two rows.
  const Tensor grid = counting({30, 5});
  const std::vector<Box> blocks =
      Sharding(Mesh::line(3), split_dim(2, 0)).owner_boxes(grid.shape());
  run_ranks(3, [&](const CommunicatorPtr& comm) {
    const Box& box = blocks[static_cast<size_t>(comm->rank())];
    const Tensor part = slice(grid, 0, box.low[0], box.high[0]);
    using Calls = std::vector<std::pair<int64_t, int64_t>>;
    for (const int64_t rows : {4, 10}) {  // with 10 no row needs no halo
      SweptBlock swept(*comm, part, {blocks, grid.shape(), rows, 0, true}, true);
      Calls calls;
      const auto moved = [&](int64_t by) {
        return [&calls, by](const SweptPart& now) {
          const int64_t height = now.out.shape(0);
          calls.push_back({now.first, height});
          ASSERT_EQ(now.padded.shape(0), height + 2 * by);
          copy_into(now.out, slice(now.padded, 0, 0, height));
        };
      };
      const int64_t radius = rows / 2;
      swept.exchange_and_sweep(radius, 1, radius, moved(radius));
      const bool is_overlapped = !home().is_cpu() && radius == 2;
      EXPECT_EQ(calls, is_overlapped ? (Calls{{2, 6}, {-2, 4}, {8, 4}})
                                     : (Calls{{-radius, 10 + 2 * radius}}));
      swept.sweep(radius, 0, moved(radius));
      EXPECT_EQ(calls.back(), (std::pair<int64_t, int64_t>{0, 10}));
      std::vector<double> expected;
      for (int64_t row = box.low[0]; row < box.high[0]; ++row) {
        for (int64_t column = 0; column < 5; ++column) {
          expected.push_back(static_cast<double>((row + 30 - 2 * radius) % 30 * 5 + column));
        }
      }
      EXPECT_EQ(values(swept.block()), expected);
    }
  });
}

/// Rows and columns of the block's numbering that one call made, [low, high) each.
struct Made {
  Interval rows, columns;
  bool is_beside = false;
  bool operator==(const Made&) const = default;
};

TEST(SweptBlock, SweepsTheColumnsBesideWhatNeedsNoHaloLast) {
  // 2 x 2 blocks of 10 x 20, of which a window keeps 4 rows and 8 columns more; float64 travels in
  // packs of two. A sweep reaches 2 rows and 3 columns.
  const Tensor grid = counting({20, 40});
  const Sharding blocks(Mesh({2, 2}, {"r", "c"}), P(Spec::Axes{"r"}, Spec::Axes{"c"}));
  run_ranks(4, [&](const CommunicatorPtr& comm) {
    for (const bool is_periodic : {false, true}) {
      SweptBlock swept(*comm, laid_out(comm, grid, blocks).local(),
                       {blocks.owner_boxes(grid.shape()), grid.shape(), 4, 8, is_periodic}, true);
      std::vector<Made> calls;
      const int64_t own = swept.own_columns().low;
      const auto work = [&](const SweptPart& part) {
        EXPECT_EQ(part.padded.shape(), (Shape{part.out.shape(0) + 4, part.out.shape(1)}));
        const int64_t left = part.first_column - own;
        calls.push_back({{part.first, part.first + part.out.shape(0)},
                         {left + part.made.low, left + part.made.high},
                         part.is_beside});
      };
      swept.exchange_and_sweep(2, 3, 2, work);
      const int row = comm->rank() / 2, column = comm->rank() % 2;
      // Where the grid ends nothing is missing, and no window has columns there.
      const bool has_above = is_periodic || row == 1, has_below = is_periodic || row == 0;
      const bool has_left = is_periodic || column == 1, has_right = is_periodic || column == 0;
      const Interval kept{has_left ? -8 : 0, has_right ? 28 : 20};
      const Interval inner{has_above ? 2 : 0, has_below ? 8 : 10};
      std::vector<Made> expected{{inner, {has_left ? 3 : 0, has_right ? 17 : 20}}};
      if (has_above) expected.push_back({{-2, 2}, kept});
      if (has_below) expected.push_back({{8, 12}, kept});
      if (has_left) expected.push_back({inner, {-8, 3}, true});
      if (has_right) expected.push_back({inner, {17, 28}, true});
      if (home().is_cpu()) expected = {{{has_above ? -2 : 0, has_below ? 12 : 10}, kept}};
      EXPECT_EQ(calls, expected) << comm->rank() << is_periodic;
    }
  });
}

/// `sweeps` of the kernel over this rank's block, of which the halo serves `depth`.
Tensor swept_in_block(const CommunicatorPtr& comm, const DistTensor& x, const Tensor& kernel,
                      Boundary boundary, int64_t sweeps, int64_t depth) {
  const int64_t radius = kernel.shape(0) / 2, across = kernel.shape(1) / 2;
  SweptBlock swept(*comm, x.local(),
                   {x.sharding().owner_boxes(x.shape()), x.shape(), radius * depth, across * depth,
                    boundary == Boundary::kPeriodic},
                   true);
  const Boundary sides = swept.has_whole_rows() ? boundary : Boundary::kZero;
  const int64_t at_once = swept.is_empty() ? 1 : row_sweeps_at_once(x.local(), kernel);
  for (int64_t done = 0; done < sweeps; done += depth) {
    for (int64_t left = std::min(depth, sweeps - done); left > 0;) {
      const bool is_first = left == std::min(depth, sweeps - done);
      const int64_t now = std::min(at_once, left);
      left -= now;
      const auto work = [&](const SweptPart& part) {
        const Interval in_grid = swept.in_grid();
        stencil2d_rows(part.padded, kernel, sides, &part.out,
                       {.sweeps = now,
                        .first = in_grid.low - part.first,
                        .last = in_grid.high - part.first,
                        .first_made = part.made.low,
                        .last_made = part.made.high});
      };
      if (is_first) {
        swept.exchange_and_sweep(radius * now, across * now, radius * left, work);
      } else {
        swept.sweep(radius * now, radius * left, work);
      }
    }
  }
  return swept.is_empty() ? x.local() : swept.block();
}

TEST(SweptBlock, OverlappedBlocksOfAnyGridHaveTheBitsOfOneRank) {
  using Axes = Spec::Axes;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const Tensor grid = noise({53, 67}, dtype);
    for (const int64_t reach : {1, 2, 3}) {
      if (is_slow() && dtype == DType::kFloat64 && reach > 1) continue;
      const Tensor kernel = noise({2 * reach + 1, 2 * reach + 1}, dtype, 2);
      for (const Boundary boundary : {Boundary::kZero, Boundary::kPeriodic}) {
        const int64_t depth = reach == 1 ? 4 : 2;
        const Tensor expected = cuop::stencil2d(grid, kernel, boundary, 7);
        for (const auto& [m, n] :
             {std::pair{1, 1}, {1, 2}, {1, 3}, {2, 2}, {4, 1}, {3, 2}, {1, 7}}) {
          const int idle = m == 3 ? 1 : 0;  // 7 ranks
          run_ranks(m * n + idle, [&, m = m, n = n](const CommunicatorPtr& comm) {
            const Sharding blocks(Mesh({m, n}, {"r", "c"}, idle), P(Axes{"r"}, Axes{"c"}));
            const DistTensor x = laid_out(comm, grid, blocks);
            const DistTensor made(comm, blocks, x.shape(), dtype,
                                  swept_in_block(comm, x, kernel, boundary, 7, depth), x.device());
            expect_close(
                gather_all(made), expected, 0,
                cat(dtype, " reach ", reach, ' ', m, 'x', n, ' ', static_cast<int>(boundary)));
          });
        }
      }
    }
  }
}

}  // namespace
}  // namespace cuop::dist
