#include "cuop/dist/plan/einsum_plan.h"

#include <gmock/gmock.h>

#include "cuop/core/text.h"
#include "cuop/ops/einsum/equation.h"
#include "tests/dist/einsum_tasks.h"

namespace cuop::dist {
namespace {

using ::testing::HasSubstr;

using rank_test::einsum_task;

TEST(EinsumPlan, LayoutsGiveTheBoxesOfTheirShardings) {
  const auto grid = std::make_shared<const Mesh>(Mesh({2, 3}, {"r", "c"}));
  const IndexLayout layout{grid, {7, 4}, -1};
  const Indices indices{4, 9, 7};
  const Shape shape{5, 2, 3};
  EXPECT_EQ(layout.boxes(indices, shape), layout.sharding(indices).owner_boxes(shape));
  EXPECT_EQ(layout.of({9, 7}).axes, (Indices{7, -1}));
  const IndexLayout nested{grid, {4, 4}, -1};
  EXPECT_EQ(nested.boxes(indices, shape), nested.sharding(indices).owner_boxes(shape));
  const IndexLayout root{std::make_shared<const Mesh>(Mesh::line(3)), {-1}, 1};
  EXPECT_FALSE(root == layout);
  EXPECT_EQ(layout, (IndexLayout{std::make_shared<const Mesh>(*grid), {7, 4}, -1}));
  EXPECT_EQ(root.boxes(indices, shape), root.sharding(indices).owner_boxes(shape));
  // A diagonal has one interval in both dimensions.
  const std::vector<Box> square = layout.boxes({4, 4}, {6, 6});
  EXPECT_EQ(square[1].interval(0), (Interval{2, 4}));
  EXPECT_EQ(square[1].interval(1), (Interval{2, 4}));
}

TEST(EinsumPlan, SixtyFourRanksShareAChainOfProducts) {
  const int n = 4096;
  const Sharding rows(Mesh::line(64), split_dim(2, 0));
  const EinsumTask task = einsum_task("ij,jk,kl->il", {{n, n}, {n, n}, {n, n}}, {rows});
  const Plan plan = plan_einsum(task, Machine{});
  const double flops = 2 * 2.0 * n * n * static_cast<double>(n);
  EXPECT_LE(plan.flops(), flops / 64 * 1.05);
  EXPECT_EQ(plan.strategy, "split");
  EXPECT_EQ(plan.hash(), plan_einsum(task, Machine{}).hash());
  EXPECT_THAT(plan.explain(), HasSubstr("i over 8, k over 8"));
}

TEST(EinsumPlan, OperandsOfEveryRankMoveNothing) {
  const Sharding rows(Mesh::line(8), split_dim(2, 0)), all = Sharding::replicated(Mesh::line(8));
  EinsumTask task = einsum_task("ij,jk,kl->il", {{8000, 16}, {16, 16}, {16, 16}}, {rows, all, all});
  const Plan plan = plan_einsum(task, Machine{});
  EXPECT_EQ(plan.bytes(), 0) << plan.explain();
  EXPECT_TRUE(same_owners(plan.outputs[0].sharding, rows, task.shape));
}

TEST(EinsumPlan, OrderAndSplitAreChosenTogether) {
  // a [m, k] of many rows lies in rows, b and c everywhere: (ab)c moves nothing and needs more
  // flops than a(bc) here, which needs a whole result of bc on each rank, made there by all.
  // When b and c lie in rows instead, a link of no speed to speak of decides for what moves least.
  const Sharding rows(Mesh::line(4), split_dim(2, 0)), columns(Mesh::line(4), split_dim(2, 1));
  const EinsumTask task =
      einsum_task("ij,jk,kl->il", {{1000, 200}, {200, 1000}, {1000, 180}}, {rows, columns, rows});
  ASSERT_GT(task.orders.size(), 1U);
  Machine slow, fast;
  slow.link_bandwidth = 1e5;
  fast.link_bandwidth = 1e15;
  fast.latency = slow.latency = 1e-9;
  fast.message_overhead = slow.message_overhead = 1e-9;
  const Plan careful = plan_einsum(task, slow), quick = plan_einsum(task, fast);
  EXPECT_LE(careful.bytes(), quick.bytes());
  EXPECT_LE(quick.flops(), careful.flops());
  for (const Candidate& candidate : careful.candidates) {
    EXPECT_LE(careful.seconds(), candidate.seconds);
  }
  EXPECT_GT(careful.candidates.size(), 1U);
}

TEST(EinsumPlan, SmallWorkStaysOnTheRoot) {
  const Sharding root = Sharding::on_rank(Mesh::line(4), 2);
  EinsumTask task = einsum_task("ij,jk->ik", {{8, 8}, {8, 8}}, {root});
  task.wanted = root;
  const Plan plan = plan_einsum(task, Machine{});
  EXPECT_EQ(plan.strategy, "root");
  EXPECT_EQ(plan.bytes(), 0);
  EXPECT_THAT(plan.detail, HasSubstr("on rank 2"));
  EinsumTask large = einsum_task("ij,jk->ik", {{4000, 4000}, {4000, 4000}}, {root});
  large.wanted = root;
  EXPECT_EQ(plan_einsum(large, Machine{}).strategy, "split");
}

TEST(EinsumPlan, ASmallPairMayStayOnTheRootBesideALargeOne) {
  const Sharding root = Sharding::on_rank(Mesh::line(4), 0);
  EinsumTask task =
      einsum_task("ab,ba,cd,dg->cg", {{90, 90}, {90, 90}, {1500, 1500}, {1500, 1500}}, {root});
  task.wanted = root;
  Machine machine;
  machine.latency = 4e-3;  // more of it than noise is then what sharing the small pair costs
  const Plan plan = plan_einsum(task, machine);
  EXPECT_EQ(plan.strategy, "mixed") << plan.explain();
  const Plan forced = plan_einsum(task, machine, "split");
  EXPECT_LE(plan.seconds(), forced.seconds());
}

TEST(EinsumPlan, ThirtyTensorsOnManyRanksArePlanned) {
  std::string equation;
  std::vector<Shape> shapes;
  for (int i = 0; i < 30; ++i) {
    equation += cat(i > 0 ? "," : "", index_letter(i), index_letter(i + 1));
    shapes.push_back({16 + i, 17 + i});
  }
  equation += cat("->", index_letter(0), index_letter(30));
  const Plan plan = plan_einsum(
      einsum_task(equation, shapes, {Sharding(Mesh::line(16), split_dim(2, 0))}), Machine{});
  EXPECT_THAT(plan.detail, HasSubstr("more"));
}

TEST(EinsumPlan, StatesTheMemoryOfTheRankThatNeedsMost) {
  const Sharding root = Sharding::on_rank(Mesh::line(2), 0);
  EinsumTask task = einsum_task("ij,jk->ik", {{10, 20}, {20, 30}}, {root});
  task.wanted = root;
  const Plan plan = plan_einsum(task, Machine{}, "root");
  EXPECT_EQ(plan.memory_per_rank, 4 * (10 * 20 + 20 * 30 + 2 * 10 * 30));
}

TEST(EinsumPlan, SlicesInTheFewestThatFit) {
  const int n = 1000;
  const Sharding rows(Mesh::line(4), split_dim(2, 0));
  const EinsumTask task = einsum_task("ij,jk,kl->il", {{8, n}, {n, n}, {n, 8}}, {rows});
  Machine machine;
  const Plan whole = plan_einsum(task, machine);
  EXPECT_TRUE(plan_slicing(whole, task.contraction).empty());
  // The operands lie there in any case; half of the rest is to do.
  int64_t held = 0;
  for (const Placement& input : task.inputs) {
    held += largest_block(input.shape, input.dtype, input.sharding);
  }
  machine.memory = held + (whole.memory_per_rank - held) / 2;
  const Plan plan = plan_einsum(task, machine);
  const Slicing slicing = plan_slicing(plan, task.contraction);
  ASSERT_FALSE(slicing.empty());
  EXPECT_LE(plan.memory_per_rank, machine.memory);
  EXPECT_EQ(plan.hash(), plan_einsum(task, machine).hash());
  EXPECT_THAT(plan.explain(), HasSubstr("slices ("));
  EXPECT_THAT(plan.explain(), HasSubstr("are added by them"));
  EXPECT_GE(plan.flops() * 4, sliced_flops(task.contraction, task.orders[0], {}));
}

}  // namespace
}  // namespace cuop::dist
