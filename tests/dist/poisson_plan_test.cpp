#include "cuop/dist/plan/poisson_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuop/core/error.h"
#include "cuop/dist/algo/poisson_internal.h"
#include "cuop/dist/plan/halo.h"
#include "cuop/dist/plan/map_plan.h"
#include "cuop/dist/plan/multigrid_levels.h"

namespace cuop::dist {
namespace {

std::vector<Box> rows_of(int64_t height, int64_t width, int ranks) {
  return split_over_ranks(ranks, 2, 0).owner_boxes({height, width});
}

std::vector<std::pair<int64_t, int64_t>> sizes(int64_t height, int64_t width, AxisEnds ends) {
  std::vector<std::pair<int64_t, int64_t>> made;
  for (const MultigridLevel& level :
       multigrid_levels({height, width, 1.0, 1.0, ends}, rows_of(height, width, 1))) {
    made.push_back({level.op.height, level.op.width});
  }
  return made;
}

TEST(MultigridLevels, EndWithOneCell) {
  using Sizes = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(sizes(6, 100, AxisEnds::kZero),
            (Sizes{{6, 100}, {3, 50}, {1, 25}, {1, 12}, {1, 6}, {1, 3}, {1, 1}}));
  EXPECT_EQ(sizes(5, 5, AxisEnds::kPeriodic), (Sizes{{5, 5}, {3, 3}, {2, 2}, {1, 1}}));
  EXPECT_EQ(sizes(1, 1, AxisEnds::kZeroFlux), (Sizes{{1, 1}}));
}

TEST(MultigridLevels, CellsThatAreFarApartWait) {
  // Down cells are bound 16 times as weakly: across is made coarser alone until that is no longer
  // so.
  const auto levels =
      multigrid_levels({64, 64, 1.0 / 16.0, 1.0, AxisEnds::kPeriodic}, rows_of(64, 64, 1));
  EXPECT_EQ(levels[1].op.height, 64);
  EXPECT_EQ(levels[1].op.width, 32);
  EXPECT_EQ(levels[2].op.height, 64);
  EXPECT_EQ(levels[2].op.width, 16);
  EXPECT_EQ(levels[3].op.height, 32);
  EXPECT_EQ(levels[3].op.width, 8);
  EXPECT_DOUBLE_EQ(levels[3].op.down, 1.0 / 64.0);
  EXPECT_DOUBLE_EQ(levels[3].op.across, 1.0 / 64.0);
}

TEST(MultigridLevels, SmallOnesLieOnOneRank) {
  const auto levels = multigrid_levels({512, 512}, rows_of(512, 512, 4), 5000);
  for (const MultigridLevel& level : levels) {
    int64_t cells = 0, ranks = 0;
    for (const Box& block : level.blocks) {
      cells += block.size();
      ranks += block.empty() ? 0 : 1;
    }
    EXPECT_EQ(cells, level.op.height * level.op.width);
    EXPECT_EQ(ranks, cells < 5000 ? 1 : 4) << level.op.height;
  }
}

TEST(PoissonPlan, LargeGridsAreSharedAndSmallOnesStay) {
  const auto problem = [](int64_t n, RowSolver solver) {
    const Sharding root = Sharding::on_rank(Mesh::line(4), 0);
    RowSolverProblem made;
    made.op = "solve";
    for (const char* name : {"grid", "rhs"}) {
      made.inputs.push_back({name, {n, n}, DType::kFloat64, root});
    }
    made.solver = solver;
    made.iterations = 1000;
    return made;
  };
  for (const RowSolver solver :
       {RowSolver::kJacobi, RowSolver::kRedBlackSor, RowSolver::kCg, RowSolver::kMultigrid}) {
    EXPECT_EQ(plan_row_solver(problem(8, solver), {}).strategy, "root");
    const Plan large = plan_row_solver(problem(4096, solver), {});
    EXPECT_EQ(large.strategy, "row") << large.explain();
    EXPECT_EQ(large.outputs[0].sharding, split_over_ranks(4, 2, 0));
    EXPECT_GT(large.bytes(), 0);
    EXPECT_GE(large.memory_per_rank, 4 * 1024 * 4096 * 8);
  }
  const Plan cycles = plan_row_solver(problem(1000, RowSolver::kMultigrid), {}, "row");
  EXPECT_THAT(cycles.explain(), ::testing::HasSubstr("passes over 1 x 1"));
  EXPECT_EQ(cycles.detail, "10 iterations");
  // Where arithmetic is faster than the wire by more, larger grids lie on one rank.
  Machine fast;
  fast.memory_bandwidth *= 100.0, fast.flops *= 100.0;
  const auto shared = [&](const Machine& machine) {
    return plan_row_solver(problem(1000, RowSolver::kMultigrid), machine, "row")
        .setting("shared_cells");
  };
  EXPECT_NEAR(static_cast<double>(shared(fast)) / static_cast<double>(shared({})), 100.0, 1.0);
  EXPECT_THROW(plan_row_solver(problem(8, RowSolver::kCg), {}, "column"), ExecutionError);
}

std::vector<std::string> arithmetic(const Plan& plan) {
  std::vector<std::string> texts;
  for (const PlanStep& step : plan.steps) {
    if (step.kind == StepKind::kCompute) texts.push_back(step.text);
  }
  return texts;
}

TEST(PoissonPlan, DirectOnesTakeARecurrenceWhereThereIsOne) {
  using testing::ElementsAre;
  const auto planned = [](AxisEnds ends, const Machine& machine) {
    const auto info = std::make_shared<SolveInfo>();
    const Sharding rows = split_over_ranks(4, 2, 0);
    const std::vector<Placement> inputs{{"grid", {2000, 1000}, DType::kFloat32, rows},
                                        {"rhs", {2000, 1000}, DType::kFloat32, rows}};
    const std::optional<Sharding> output;
    const std::string strategy;
    return direct_solver("direct", 1.0, ends, info).plan({inputs, output, machine, strategy});
  };
  Machine host, other;
  other.recurrence_speed = 0;
  const auto transforms = ElementsAre("transform along 1", "transform along 0", "transform along 0",
                                      "transform along 1");
  for (const AxisEnds ends : {AxisEnds::kZero, AxisEnds::kZeroFlux}) {
    const Plan plan = planned(ends, host);
    EXPECT_THAT(arithmetic(plan),
                ElementsAre("transform along 1", "recurrence along 0", "transform along 1"));
    EXPECT_LT(plan.seconds(), planned(ends, other).seconds());
    EXPECT_THAT(arithmetic(planned(ends, other)), transforms);
    // Its part of the grid, that of a pass and two doubles of each element.
    const int64_t part = 2000 * 1000 / 4 * int64_t{sizeof(float)};
    EXPECT_EQ(plan.memory_per_rank, part + part + part + 4 * part);
    Machine small = host;
    small.memory = plan.memory_per_rank - 1;
    EXPECT_THAT(arithmetic(planned(ends, small)), transforms);
  }
  EXPECT_THAT(arithmetic(planned(AxisEnds::kPeriodic, host)), transforms);
}

TEST(Halo, WindowsAreWrappedAroundAsOftenAsNeeded) {
  const std::vector<Box> windows{{{-2, 0}, {3, 4}}, empty_box(2), {{1, 0}, {8, 4}}};
  const HaloNeeds around = needs_of_windows(windows, {3, 4}, true);
  int64_t rows[] = {0, 0, 0};
  for (size_t i = 0; i < around.needs.size(); ++i) {
    const Need& need = around.needs[i];
    const int64_t low = windows[static_cast<size_t>(need.rank)].low[0];
    EXPECT_EQ((low + around.place[i][0] + 9) % 3, need.box.low[0]);
    rows[need.rank] += need.box.interval(0).length();
  }
  EXPECT_EQ(rows[0], 5);
  EXPECT_EQ(rows[1], 0);
  EXPECT_EQ(rows[2], 7);
  const HaloNeeds cut = needs_of_windows(windows, {3, 4}, false);
  ASSERT_EQ(cut.needs.size(), 2u);
  EXPECT_EQ(cut.needs[0].box, (Box{{0, 0}, {3, 4}}));
  EXPECT_EQ(cut.place[0][0], 2);
  EXPECT_EQ(cut.needs[1].box, (Box{{1, 0}, {3, 4}}));
}

}  // namespace
}  // namespace cuop::dist
