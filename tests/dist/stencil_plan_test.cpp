#include "cuop/dist/plan/stencil_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuop/dist/plan/map_plan.h"
#include "tests/dist/cluster_machine.h"

namespace cuop::dist {
namespace {

using rank_test::cluster;
using ::testing::HasSubstr;

SweepProblem problem(const Shape& shape, const Sharding& lying) {
  SweepProblem made;
  made.op = "sweeps";
  made.inputs = {{"grid", shape, DType::kFloat32, lying}};
  made.iterations = 100;
  made.max_depth = kMaxDepth;
  return made;
}

Sharding grid_rows(int ranks) { return split_over_ranks(ranks, 2, 0); }
Sharding columns(int ranks) { return split_over_ranks(ranks, 2, 1); }

TEST(StencilPlan, CutsTheLongSide) {
  const Sharding root = Sharding::on_rank(Mesh::line(8), 0);
  const Plan wide = plan_sweeps(problem({300, 1 << 22}, root), cluster());
  EXPECT_EQ(wide.strategy, "column") << wide.explain();
  EXPECT_EQ(wide.outputs[0].sharding, columns(8));
  const Plan tall = plan_sweeps(problem({1 << 22, 300}, root), cluster());
  EXPECT_EQ(tall.strategy, "row") << tall.explain();
  EXPECT_EQ(tall.outputs[0].sharding, grid_rows(8));
  EXPECT_LT(plan_sweeps(problem({300, 1 << 22}, root), cluster(), "column").bytes(),
            plan_sweeps(problem({300, 1 << 22}, root), cluster(), "row").bytes());
}

TEST(StencilPlan, ManyRanksShareASquareInBlocks) {
  Machine thin_wire = cluster();
  thin_wire.link_bandwidth = 1e9;
  SweepProblem square = problem({8192, 8192}, Sharding::on_rank(Mesh::line(64), 0));
  square.iterations = 10'000;  // the scatter counts for nothing
  const Plan plan = plan_sweeps(square, thin_wire);
  EXPECT_EQ(plan.strategy, "block_2d") << plan.explain();
  EXPECT_THAT(plan.detail, HasSubstr("grid 8x8, "));
  for (const Candidate& candidate : plan.candidates) EXPECT_GE(candidate.seconds, plan.seconds());
}

TEST(StencilPlan, WhatLiesInBlocksStays) {
  for (const Sharding& lying :
       {grid_rows(4), columns(4),
        Sharding(Mesh({2, 2}, {"x", "y"}), P(Spec::Axes{"x"}, Spec::Axes{"y"})),
        columns(4).with_blocks(1, {2000, 1000, 0, 1096})}) {
    SweepProblem few = problem({4096, 4096}, lying);
    few.iterations = 2;
    const Plan plan = plan_sweeps(few, cluster());
    EXPECT_TRUE(same_owners(plan.outputs[0].sharding, lying, {4096, 4096})) << plan.explain();
    EXPECT_THAT(plan.steps.at(0).text, HasSubstr("halo of"));
  }
}

TEST(StencilPlan, AForcedCutUsesAllRanksWhereItCan) {
  const Shape shape{1000, 1000};
  const Sharding root = Sharding::on_rank(Mesh::line(7), 0);
  const auto mesh_of = [&](const char* strategy) {
    return plan_sweeps(problem(shape, root), cluster(), strategy).outputs[0].sharding.mesh();
  };
  EXPECT_EQ(mesh_of("row"), Mesh::line(7));
  EXPECT_EQ(mesh_of("column"), Mesh::line(7));
  EXPECT_EQ(mesh_of("block_2d"), Mesh({3, 2}, {"r", "c"}, 1));
  // No grid of 3 ranks has two rows and two columns.
  const Sharding three = Sharding::on_rank(Mesh::line(3), 0);
  EXPECT_EQ(plan_sweeps(problem(shape, three), cluster(), "block_2d").outputs[0].sharding,
            columns(3));
  // Unasked nobody is left idle, and no cut is weighed twice.
  EXPECT_EQ(plan_sweeps(problem(shape, grid_rows(2)), cluster()).candidates.size(), 2u * 5u);
  EXPECT_EQ(plan_sweeps(problem(shape, grid_rows(1)), cluster()).candidates.size(), 5u);
  for (const Candidate& each : plan_sweeps(problem(shape, root), cluster()).candidates) {
    EXPECT_EQ(each.detail.find("3x2"), std::string::npos) << each.detail;
  }
}

TEST(StencilPlan, NormsAtTheEndCostWhatTheyMove) {
  const Shape shape{400, 400};
  SweepProblem silent = problem(shape, columns(4));
  SweepProblem telling = silent;
  telling.ends_with_norms = true;
  const auto planned = [](const SweepProblem& of, const char* strategy) {
    return plan_sweeps(of, cluster(), strategy);
  };
  EXPECT_EQ(planned(silent, "row").bytes(), planned(telling, "row").bytes());
  EXPECT_EQ(planned(silent, "row").memory_per_rank, planned(telling, "row").memory_per_rank);
  const Plan cut = planned(telling, "column");
  // Of 400 x 400 three quarters change their rank, of the grid twice.
  EXPECT_EQ(cut.bytes() - planned(silent, "column").bytes(), 2 * 3 * 400 * 100 * 4);
  EXPECT_GT(cut.memory_per_rank, planned(silent, "column").memory_per_rank);
}

TEST(StencilPlan, LongHalosAreOverlapped) {
  const Shape shape{20'000, 20'000};
  const auto planned = [&](double link_bandwidth, const char* strategy, int64_t iterations) {
    Machine machine = cluster();
    machine.latency = 2e-5;
    machine.link_bandwidth = link_bandwidth;
    SweepProblem sweeps = problem(shape, grid_rows(4));
    sweeps.iterations = iterations;
    return plan_sweeps(sweeps, machine, strategy);
  };
  EXPECT_EQ(planned(1e10, "row", 100).setting("overlap"), 1);
  EXPECT_THAT(planned(1e10, "row", 100).explain(), HasSubstr("GPUs sweeping what needs no halo"));
  EXPECT_EQ(planned(4e11, "row", 100).setting("overlap"), 0);  // the wire is faster than a launch
  EXPECT_EQ(planned(1e10, "column", 100).setting("overlap"), 1);
  EXPECT_EQ(planned(1e10, "block_2d", 100).setting("overlap"), 1);
  EXPECT_EQ(planned(4e11, "block_2d", 100).setting("overlap"), 0);
  EXPECT_EQ(planned(1e10, "row", 0).setting("overlap"), 0);
  SweepProblem thin = problem({8, 1 << 20}, grid_rows(4));  // all of it needs the halo
  Machine slow = cluster();
  slow.link_bandwidth = 1e8;
  EXPECT_EQ(plan_sweeps(thin, slow, "row").setting("overlap"), 0);
}

TEST(StencilPlan, StripsOfColumnsCostAsMuchAsTiles) {
  // What needs no halo is narrower than the two tiles that the columns beside it take.
  Machine slow = cluster();
  slow.link_bandwidth = 1e6;
  slow.latency = slow.message_overhead = 1e-9;
  const auto overlap = [&](int64_t width) {
    SweepProblem narrow = problem({100'000, width}, columns(2));
    narrow.max_depth = 1;
    return plan_sweeps(narrow, slow, "column").setting("overlap");
  };
  EXPECT_EQ(overlap(2 * 200), 0);
  EXPECT_EQ(overlap(2 * 300), 1);
}

TEST(HaloGrid, CornersComeFromTheirOwners) {
  const Sharding blocks(Mesh({2, 2}, {"r", "c"}), P(Spec::Axes{"r"}, Spec::Axes{"c"}));
  HaloGrid grid{blocks.owner_boxes({4, 4}), {4, 4}, 1, 1, false};
  EXPECT_FALSE(grid.has_whole_rows());
  EXPECT_EQ(grid.window(0), (Box{{-1, 0}, {3, 3}}));
  const HaloNeeds needs = grid.needs();
  ASSERT_EQ(needs.needs.size(), 8u);
  EXPECT_EQ(needs.needs[0].box, (Box{{2, 0}, {3, 3}}));  // of rank 0, from ranks 2 and 3
  EXPECT_EQ(needs.place[0], (Dims{3, 0}));
  EXPECT_EQ(needs.needs[1].box, (Box{{0, 2}, {2, 3}}));
  EXPECT_EQ(needs.place[1], (Dims{1, 2}));
  const RankMoves moves = plan_moves(0, grid.blocks, needs.needs);
  ASSERT_EQ(moves.receives.size(), 3u);
  EXPECT_EQ(moves.receives[0].box, (Box{{0, 2}, {2, 3}}));
  EXPECT_EQ(moves.receives[1].box, (Box{{2, 0}, {3, 2}}));
  EXPECT_EQ(moves.receives[2].box, (Box{{2, 2}, {3, 3}}));

  grid.is_periodic = true;
  EXPECT_EQ(grid.window(0), (Box{{-1, -1}, {3, 3}}));
  int64_t cells = 0;
  for (const Need& need : grid.needs().needs) cells += need.box.size();
  EXPECT_EQ(cells, 4 * (4 * 4 - 2 * 2));
}

TEST(HaloGrid, MayBeDeeperThanTheGrid) {
  const HaloGrid grid{columns(3).owner_boxes({1, 3}), {1, 3}, 0, 7, true};
  EXPECT_EQ(grid.window(1), (Box{{0, -6}, {1, 9}}));
  int64_t cells = 0;
  for (const Need& need : grid.needs().needs) {
    if (need.rank == 1) cells += need.box.size();
  }
  EXPECT_EQ(cells, 14);
  const HaloGrid cut{columns(3).owner_boxes({1, 3}), {1, 3}, 0, 7, false};
  EXPECT_EQ(cut.window(1), whole_box({1, 3}));
}

}  // namespace
}  // namespace cuop::dist
