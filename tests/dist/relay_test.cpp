// Relays replayed: the first step and what is passed on give each rank its box, and the owner sends
// each shared box once.
#include "cuop/dist/relay.h"

#include <gmock/gmock.h>

#include "cuop/core/text.h"
#include "cuop/dist/algo/matmul.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/exec/report.h"
#include "cuop/dist/moves.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/matmul.h"
#include "tests/dist/algo_test.h"

namespace cuop::dist {
namespace {

using namespace rank_test;  // NOLINT: the frame of these tests
using ::testing::HasSubstr;

std::vector<Box> all_on(int rank, int ranks, const Shape& shape) {
  return Sharding::on_rank(Mesh::line(ranks), rank).owner_boxes(shape);
}

/// Links on which the first byte costs nothing, so that whatever sends fewer bytes is faster.
Machine slow_links() {
  Machine machine;
  machine.link_bandwidth = 1e3;
  machine.latency = machine.message_overhead = 1e-12;
  return machine;
}

TEST(Relay, SharesWhatSeveralNeed) {
  const auto relay = relay_of(all_on(0, 4, {6, 8}), std::vector<Box>(4, whole_box({6, 8})));
  ASSERT_TRUE(relay);
  EXPECT_EQ(relay->first[0], whole_box({6, 8}));  // which it has
  EXPECT_TRUE(relay->parts[0].empty());
  EXPECT_TRUE(relay->shared[0].empty());
  EXPECT_EQ(relay->first[2], (Box{{2, 0}, {4, 8}}));
  EXPECT_EQ(relay->parts[2], relay->first[2]);
  EXPECT_EQ(relay->shared[2], whole_box({6, 8}));
  const std::vector<Box> owners = all_on(0, 4, {6, 8});
  EXPECT_EQ(plan_traffic(owners, needs_of(relay->first)).busiest(), 48);
  EXPECT_EQ(plan_traffic(relay->parts, needs_of(relay->shared)).busiest(), 32);
}

TEST(Relay, TakesAnotherAxisWhereTheFirstIsTooShort) {
  const auto relay = relay_of(all_on(1, 4, {2, 5}), std::vector<Box>(4, whole_box({2, 5})));
  ASSERT_TRUE(relay);
  EXPECT_EQ(relay->first[3], (Box{{0, 4}, {2, 5}}));
}

TEST(Relay, IsNoneWhereNothingIsGained) {
  const Shape shape{4, 4};
  const Box whole = whole_box(shape), none = empty_box(2);
  const std::vector<Box> at_root = all_on(0, 3, shape);
  EXPECT_FALSE(relay_of(at_root, std::vector{whole, whole, none}));  // one needs it
  EXPECT_FALSE(relay_of(at_root, Sharding(Mesh::line(3), split_dim(2, 0)).owner_boxes(shape)));
  EXPECT_FALSE(relay_of(Sharding(Mesh::line(3), split_dim(2, 0)).owner_boxes(shape),
                        std::vector(3, whole)));  // several have it
  EXPECT_FALSE(
      relay_of(Sharding::replicated(Mesh::line(3)).owner_boxes(shape), std::vector(3, whole)));
  // Boxes that overlap: nobody could say who has what.
  const Box top{{0, 0}, {3, 4}}, bottom{{2, 0}, {4, 4}};
  EXPECT_FALSE(relay_of(all_on(0, 5, shape), std::vector{none, top, top, bottom, bottom}));
  // Too few elements for all, and none.
  EXPECT_FALSE(relay_of(all_on(0, 4, {1, 1}), std::vector(4, whole_box({1, 1}))));
  EXPECT_FALSE(relay_of(all_on(0, 4, {0, 4}), std::vector(4, whole_box({0, 4}))));
  EXPECT_FALSE(relay_of(all_on(0, 4, {}), std::vector(4, whole_box({}))));
  EXPECT_FALSE(relay_of(all_on(0, 65, shape), std::vector(65, whole_box(shape))));
}

TEST(Relay, BringsWhatRanksNeed) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Shape shape{11, 5};
      const Tensor whole = noise(shape);
      const Box left{{0, 0}, {11, 2}}, right{{0, 2}, {11, 5}};
      for (int root = 0; root < ranks; ++root) {
        std::vector<Box> halves(static_cast<size_t>(ranks)), mixed = halves;
        for (size_t rank = 0; rank < halves.size(); ++rank) {
          halves[rank] = rank % 2 == 0 ? left : right;
          mixed[rank] = rank == 0 ? empty_box(2) : rank == 1 ? right : left;
        }
        for (const auto& boxes : {std::vector(halves.size(), whole_box(shape)), halves, mixed}) {
          const bool is_root = comm->rank() == root;
          const Box held = is_root ? whole_box(shape) : empty_box(2);
          const Part source{is_root ? whole : empty({0, 0}, whole.dtype(), whole.device()), held,
                            whole.device()};
          const Tensor given = fetch(*comm, source, all_on(root, ranks, shape), boxes,
                                     whole.dtype(), Travel{.is_relayed = true});
          const Box& mine = boxes[static_cast<size_t>(comm->rank())];
          if (mine.empty()) continue;
          expect_close(given, view_of({whole, whole_box(shape), whole.device()}, mine), 0,
                       cat(ranks, " ranks, root ", root));
          EXPECT_EQ(is_root, given.storage() == whole.storage());  // copied nowhere else
        }
      }
    });
  }
}

TEST(Relay, IsPlannedWhereItIsFaster) {
  const Sharding at_root = Sharding::on_rank(Mesh::line(4), 0);
  for (const bool is_slow : {true, false}) {
    Machine machine = slow_links();
    if (!is_slow) machine.latency = 1e3;
    Plan plan;
    add_input(plan, machine, {"B", {30, 40}, DType::kFloat32, at_root},
              Sharding::replicated(Mesh::line(4)), true);
    EXPECT_EQ(is_relayed(plan, 0), is_slow);
    EXPECT_FALSE(is_relayed(plan, 1));
    ASSERT_EQ(plan.steps.size(), is_slow ? 2u : 1u);
    EXPECT_EQ(plan.steps[0].rank_bytes, (is_slow ? 1 : 3) * 4800);
    for (const PlanStep& step : plan.steps) EXPECT_EQ(step.whole_on, 0);
  }
}

TEST(Relay, ProductsAndMappedOperationsEqualOneRanks) {
  const Machine machine = slow_links();
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      // A plain process uses all of its GPUs.
      const auto are_several = [] { return last_report().plan.ranks > 2; };
      const auto is_relayed_now = [](size_t input) {
        return is_relayed(last_report().plan, input);
      };
      const Tensor a = noise({17, 12}), b = noise({12, 9}, DType::kFloat64, 2);
      for (const char* strategy : {"row", "column", "block_2d", "k_split"}) {
        const Tensor c = matmul_from_root(comm, on_root(comm, a), on_root(comm, b),
                                          {.strategy = strategy, .machine = machine});
        expect_rooted(comm, c, cuop::matmul(a, b), 1e-13, cat(ranks, ' ', strategy));
        if (std::string_view(strategy) == "row") {
          EXPECT_EQ(is_relayed_now(1), are_several());
        }
        if (std::string_view(strategy) == "column") {
          EXPECT_EQ(is_relayed_now(0), are_several());
        }
        if (ranks < 3 || std::string_view(strategy) != "row") continue;
        // In panels too.
        Machine small = machine;
        small.memory = last_report().plan.memory_per_rank - 400;
        const Tensor in_panels = matmul_from_root(comm, on_root(comm, a), on_root(comm, b),
                                                  {.strategy = strategy, .machine = small});
        EXPECT_GT(last_report().plan.setting("panels"), 1);
        expect_rooted(comm, in_panels, cuop::matmul(a, b), 1e-13, cat(ranks, " in panels"));
      }
      const Tensor many = noise({14, 4, 12});
      const Tensor made = batch_matmul_from_root(comm, on_root(comm, many), on_root(comm, b),
                                                 {.strategy = "batch", .machine = machine});
      expect_rooted(comm, made, cuop::matmul(many, b), 1e-13, cat(ranks, " ranks, batch"));
      EXPECT_EQ(is_relayed_now(1), are_several());
    });
  }
}

}  // namespace
}  // namespace cuop::dist
