#include "cuop/dist/plan/matmul_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cuop/core/error.h"
#include "cuop/dist/plan/rank_grids.h"
#include "tests/dist/cluster_machine.h"
#include "tests/error_of.h"

namespace cuop::dist {
namespace {

using rank_test::cluster;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

MatmulProblem rooted(int ranks, int64_t m, int64_t n, int64_t k) {
  const Sharding root = Sharding::on_rank(Mesh::line(ranks), 0);
  return {m, n, k, DType::kFloat32, root, root, root};
}

MatmulProblem sharded(int ranks, int64_t m, int64_t n, int64_t k) {
  const Sharding rows(Mesh::line(ranks), split_dim(2, 0));
  return {m, n, k, DType::kFloat32, rows, rows, std::nullopt};
}

TEST(MatmulPlan, LeavesARankIdleWhereThatMovesLess) {
  // 7 = 1 x 7 sends all of one operand to everybody; 2 x 3 of the 7 send half and a third.
  const Plan plan = plan_matmul(sharded(7, 4096, 4096, 4096), cluster(), "block_2d");
  EXPECT_EQ(plan.outputs[0].sharding.mesh().idle(), 1) << plan.explain();
  const Plan line = plan_matmul(sharded(7, 4096, 4096, 4096), cluster(), "column");
  EXPECT_LT(plan.bytes(), line.bytes());
  EXPECT_TRUE(plan.outputs[0].sharding.owner_box({4096, 4096}, 6).empty());
  // A forced strategy takes all ranks where it can.
  for (const char* strategy : {"row", "column", "k_split"}) {
    EXPECT_EQ(
        plan_matmul(rooted(7, 8, 8, 8), cluster(), strategy).outputs[0].sharding.mesh().idle(), 0);
  }
}

TEST(MatmulPlan, ChoosesATwoDimensionalGridForASquareProductOn64Ranks) {
  const Plan plan = plan_matmul(sharded(64, 32768, 32768, 32768), cluster());
  EXPECT_TRUE(plan.strategy == "block_2d" || plan.strategy == "k_split") << plan.explain();
  for (const Candidate& candidate : plan.candidates) EXPECT_GE(candidate.seconds, plan.seconds());
  EXPECT_GT(plan.candidates.size(), 20u);
}

TEST(MatmulPlan, OfManyRanksFewMayBeIdle) {
  // 251 is prime: only grids of fewer ranks have two sides, and 250 ranks have enough of them. Each
  // is a count of all moves, of which hundreds would take long.
  const auto least_size = [](int ranks, std::string_view forced) {
    const auto grids = named_grids(ranks, forced, {.splits_k = true, .leaves_idle = true});
    const auto size = [](const NamedGrid& each) { return each.grid.size(); };
    EXPECT_EQ(std::ranges::max(grids, {}, size).grid.size(), ranks);
    return std::ranges::min(grids, {}, size).grid.size();
  };
  EXPECT_EQ(least_size(251, ""), 250);
  EXPECT_EQ(least_size(1024, ""), 1024);
  EXPECT_EQ(least_size(31, ""), 29);
  EXPECT_EQ(least_size(262, "block_2d"), 262);  // 2 x 131
  EXPECT_EQ(least_size(257, "block_2d"), 256);  // which 257 has not
  const Plan plan = plan_matmul(sharded(251, 1 << 14, 1 << 14, 1 << 14), cluster());
  EXPECT_GT(plan.outputs[0].sharding.mesh().idle(), 0) << plan.explain();
}

TEST(MatmulPlan, KeepsTheTallOperandWhereItIs) {
  // B is small: multiply rows where they lie, send B around.
  const Plan plan = plan_matmul(sharded(64, 1 << 20, 64, 64), cluster());
  EXPECT_EQ(plan.strategy, "row") << plan.explain();
  EXPECT_EQ(plan.bytes(), 64 * 64 * 4 * 63);
}

TEST(MatmulPlan, SplitsALongInnerDimension) {
  const Sharding rows(Mesh::line(64), split_dim(2, 0));
  const Sharding columns(Mesh::line(64), split_dim(2, 1));
  const Plan plan =
      plan_matmul({64, 64, 1 << 22, DType::kFloat32, columns, rows, std::nullopt}, cluster());
  EXPECT_EQ(plan.strategy, "k_split") << plan.explain();
  EXPECT_EQ(plan.detail, "grid 1x1x64");
}

TEST(MatmulPlan, StaysOnTheRootWhenThatIsFastest) {
  EXPECT_EQ(plan_matmul(rooted(8, 32, 32, 32), cluster()).strategy, "root");
  EXPECT_EQ(plan_matmul(rooted(8, 32, 32, 32), cluster()).bytes(), 0);
  EXPECT_NE(plan_matmul(rooted(8, 32768, 32768, 32768), cluster()).strategy, "root");
}

TEST(MatmulPlan, CountsTheBytesOfScatterAndGather) {
  const Plan plan = plan_matmul(rooted(4, 8, 12, 16), cluster(), "row");
  const int64_t a = 8 * 16 * 4;
  const int64_t b = 16 * 12 * 4;
  const int64_t c = 8 * 12 * 4;
  EXPECT_EQ(plan.bytes(), a * 3 / 4 + b * 3 + c * 3 / 4) << plan.explain();
}

TEST(MatmulPlan, CutsPanelsUnderAMemoryLimit) {
  Machine machine = cluster();
  const MatmulProblem problem = sharded(16, 4096, 4096, 4096);
  const int64_t unlimited = plan_matmul(problem, machine, "row").memory_per_rank;
  machine.memory = unlimited / 4;
  const Plan plan = plan_matmul(problem, machine, "row");
  EXPECT_GT(plan.setting("panels"), 1);
  EXPECT_LE(plan.memory_per_rank, machine.memory);
  machine.memory = 1000;
  EXPECT_THAT(test::error_of<MemoryError>([&] { plan_matmul(problem, machine); }),
              HasSubstr("no plan fits the memory limit"));
}

TEST(MatmulPlan, OffersEveryStrategyOnAnyNumberOfRanks) {
  for (const int ranks : {1, 2, 3, 4, 6, 7, 13, 17, 64}) {
    for (const char* strategy : {"root", "row", "column", "block_2d", "k_split"}) {
      for (const int64_t size : {0, 1, 5, 100}) {
        const Plan plan = plan_matmul(rooted(ranks, size, size + 1, size), cluster(), strategy);
        EXPECT_EQ(plan.strategy, strategy);
        EXPECT_EQ(plan.inputs[0].sharding.mesh().size(), ranks);
      }
    }
  }
  EXPECT_THAT(test::error_of<ExecutionError>(
                  [] { plan_matmul(rooted(2, 4, 4, 4), cluster(), "diagonal"); }),
              AllOf(HasSubstr("no strategy \"diagonal\""), HasSubstr("block_2d")));
}

TEST(MatmulPlan, CountsTheMemoryOfPartialProducts) {
  // Each of 4 ranks keeps its 64 x 16 of A and 16 x 32 of B, makes a whole partial product of
  // 64 x 32 and keeps a quarter of the sum.
  const Sharding rows(Mesh::line(4), split_dim(2, 0));
  const Sharding columns(Mesh::line(4), split_dim(2, 1));
  MatmulProblem problem{64, 32, 64, DType::kFloat32, columns, rows, std::nullopt};
  const Plan plan = plan_matmul(problem, cluster(), "k_split");
  ASSERT_EQ(plan.detail, "grid 1x1x4") << plan.explain();
  EXPECT_EQ(plan.memory_per_rank, 4 * (64 * 16 + 16 * 32 + 64 * 32 + 64 * 32 / 4));
  // Where the sum is wanted elsewhere, what is wanted is held as well.
  problem.c = Sharding::on_rank(Mesh::line(4), 2);
  const Plan gathered = plan_matmul(problem, cluster(), "k_split");
  ASSERT_EQ(gathered.detail, "grid 1x1x4");
  EXPECT_EQ(gathered.memory_per_rank, plan.memory_per_rank + 4 * 64 * 32);
}

TEST(MatmulPlan, MultipliesShortBlocksAsTheyLie) {
  // The same of float16: the partial product and its sum are float32, and the result is rounded.
  const Sharding rows(Mesh::line(4), split_dim(2, 0));
  const Sharding columns(Mesh::line(4), split_dim(2, 1));
  const MatmulProblem problem{64, 32, 64, DType::kFloat16, columns, rows, std::nullopt};
  Machine machine = cluster();
  machine.half_speed = 8.0;
  const Plan plan = plan_matmul(problem, machine, "k_split");
  ASSERT_EQ(plan.detail, "grid 1x1x4") << plan.explain();
  EXPECT_EQ(plan.memory_per_rank, 2 * (64 * 16 + 16 * 32 + 64 * 32 / 4) + 4 * (64 * 32) * 5 / 4);
  // Arithmetic, 8 times as fast as that of float32, and memory.
  const double arithmetic = 2.0 * 64 * 16 * 32 / (8.0 * machine.flops);
  const double memory = (2 * 64 * 16 + 2 * 16 * 32 + 4 * 64 * 32) / 3e12;
  EXPECT_DOUBLE_EQ(plan.seconds(false), arithmetic + memory);
}

TEST(MatmulPlan, CountsCopiesOfShortRowsThatFillNoSteps) {
  const Sharding root = Sharding::on_rank(Mesh::line(2), 0);
  const auto seconds = [&](int64_t m, int64_t n, int64_t k, DType dtype) {
    Machine machine = cluster();
    machine.flops = 1e30;
    return plan_matmul({m, n, k, dtype, root, root, root}, machine, "root").seconds();
  };
  const auto memory = [](double m, double n, double k, double item) {
    return item * (m * k + k * n + m * n) / 3e12;
  };
  EXPECT_NEAR(seconds(801, 800, 808, DType::kBFloat16), memory(801, 800, 808, 2), 1e-12);
  EXPECT_NEAR(seconds(800, 802, 808, DType::kBFloat16), 3 * memory(800, 802, 808, 2), 1e-12);
  EXPECT_NEAR(seconds(800, 808, 804, DType::kFloat16), 3 * memory(800, 808, 804, 2), 1e-12);
  EXPECT_NEAR(seconds(800, 801, 808, DType::kBFloat16), 5 * memory(800, 801, 808, 2), 1e-12);
  EXPECT_NEAR(seconds(800, 808, 801, DType::kFloat16), 5 * memory(800, 808, 801, 2), 1e-12);
  EXPECT_NEAR(seconds(801, 801, 801, DType::kFloat32), memory(801, 801, 801, 4), 1e-12);
}

TEST(MatmulPlan, RoundsBlocksThatTravelShortWhereThatPays) {
  const Sharding root = Sharding::on_rank(Mesh::line(4), 0);
  const auto planned = [&](int64_t edge, double half_speed) {
    Machine machine = cluster();
    machine.half_speed = half_speed;
    return plan_matmul({edge, edge, edge, DType::kFloat32, root, root, root,
                        Wire::narrow(DType::kFloat16, "test")},
                       machine, "row");
  };
  EXPECT_EQ(planned(8192, 8.0).setting("narrow"), 1);
  EXPECT_EQ(planned(8192, 1.0).setting("narrow"), 0);
  EXPECT_EQ(planned(16, 8.0).setting("narrow"), 0);  // passes over memory cost more
  // 5.5e11 flops at 8 times 5e13 a second on half as long operands, and passes: A's and B's 64 +
  // 256 MiB are read to be measured, read and written half as long, C's 64 MiB are read and
  // written.
  const Plan plan = planned(8192, 8.0);
  const double mib = 1 << 20;
  const auto rounding = std::ranges::find_if(plan.steps, [](const PlanStep& step) {
    return step.text.starts_with("what travels rounded");
  });
  ASSERT_NE(rounding, plan.steps.end());
  EXPECT_NEAR(plan.seconds(false) - rounding->seconds,
              2.0 * 2048 * 8192 * 8192 / 4e14 + (0.5 * 320 + 64 + 2.5 * 320 + 2 * 64) * mib / 3e12,
              1e-9)
      << plan.explain();
  EXPECT_EQ(plan.memory_per_rank - planned(8192, 1.0).memory_per_rank, (64 + 256) / 2 << 20);
}

TEST(Plan, IsEqualByHashAndPrints) {
  const Plan plan = plan_matmul(sharded(4, 64, 64, 64), cluster());
  EXPECT_EQ(plan.hash(), plan_matmul(sharded(4, 64, 64, 64), cluster()).hash());
  EXPECT_NE(plan.hash(), plan_matmul(sharded(4, 64, 64, 65), cluster()).hash());
  EXPECT_THAT(plan.explain(), HasSubstr("considered"));
  EXPECT_THAT(plan.to_json(), HasSubstr("\"op\":\"matmul\""));
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_seconds(0.0015), "1.5 ms");
}

TEST(Plan, APlanWithoutAlternativesListsNone) {
  Plan plan = plan_matmul(sharded(4, 64, 64, 64), cluster());
  ASSERT_GT(plan.candidates.size(), 1u);
  for (const size_t left : {size_t{1}, size_t{0}}) {
    plan.candidates.resize(left);
    EXPECT_THAT(plan.explain(), Not(HasSubstr("considered")));
  }
}

TEST(Machine, AMessageCostsWhateverItsLength) {
  Machine machine;
  machine.latency = 1e-3;
  machine.message_overhead = 1e-4;
  machine.link_bandwidth = 1e6;
  EXPECT_EQ(transfer_seconds(machine, 0, 0), 0.0);
  EXPECT_DOUBLE_EQ(transfer_seconds(machine, 5000, 1), 1e-3 + 1e-4 + 5e-3);
  EXPECT_DOUBLE_EQ(transfer_seconds(machine, 5000, 31), 1e-3 + 31e-4 + 5e-3);
}

TEST(Plan, AStepCostsTheMessagesOfItsBusiestRank) {
  // The same bytes out of rank 0: to one rank in one message, to four in four.
  const Machine machine = cluster();
  std::vector<Box> owners(5, Box{{0}, {0}});
  owners[0] = whole_box({80});
  Plan together, apart;
  add_move(together, machine, "to one", owners, {{1, whole_box({80})}}, DType::kFloat32);
  std::vector<Need> quarters;
  for (int i = 0; i < 4; ++i) quarters.push_back({i + 1, Box{{i * 20}, {i * 20 + 20}}});
  add_move(apart, machine, "to four", owners, quarters, DType::kFloat32);
  EXPECT_THAT(together.explain(), HasSubstr("to one: "));
  EXPECT_THAT(apart.explain(), HasSubstr("to four: "));
  ASSERT_EQ(together.steps[0].messages, 1);
  ASSERT_EQ(apart.steps[0].messages, 4);
  EXPECT_EQ(apart.bytes(), together.bytes());
  EXPECT_NEAR(apart.seconds() - together.seconds(), 3 * machine.message_overhead,
              1e-6 * machine.message_overhead);
}

}  // namespace
}  // namespace cuop::dist
