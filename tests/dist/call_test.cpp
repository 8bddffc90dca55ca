// The frame of distributed calls: one failure for all, one plan for all, and reports.
#include "cuop/dist/exec/call.h"

#include <gmock/gmock.h>

#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/exec/report.h"
#include "cuop/dist/plan/map_plan.h"
#include "tests/dist/algo_test.h"
#include "tests/error_of.h"

namespace cuop::dist {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace rank_test;  // NOLINT: the frame of these tests

/// Copies a vector block by block; `before` runs on each rank between planning and moving.
Operation copying(const std::function<void(int rank)>& before) {
  const auto plan = [](const PlanArguments& given) {
    const Placement& x = given.inputs.at(0);
    MapProblem problem;
    problem.op = "copying";
    problem.inputs = given.inputs;
    problem.shape = x.shape;
    problem.dtype = x.dtype;
    problem.needed = [](size_t, const Box& box) { return box; };
    problem.choices = {{"row", split_over_ranks(x.sharding.mesh().size(), x.shape.ndim(), 0)}};
    problem.wanted = given.output;
    return plan_map(problem, given.machine, given.strategy);
  };
  const auto execute = [before](const Plan& made, const std::vector<DistTensor>& inputs) {
    before(inputs[0].comm().rank());
    return moved_to(inputs[0], made.outputs[0].sharding);
  };
  return {"copying", {"x"}, plan, execute};
}

TEST(DistCall, AnExceptionAmidTheWorkRaisesOnEveryRank) {
  for (const int ranks : {2, 3, 4}) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const int last = ranks - 1;
      const Tensor x = counting({12});
      const Operation fails = copying([&](int rank) {
        if (rank == last) throw MemoryError("copying: no memory left");
      });
      const std::string message =
          failure_of([&] { run_rooted(comm, fails, {on_root(comm, x)}, {.strategy = "row"}); });
      EXPECT_THAT(message, HasSubstr("no memory left"));
      if (comm->rank() != last) {
        EXPECT_THAT(message, HasSubstr(cat("rank ", last)));
      }
      // All ranks meet again and the next call works.
      const Operation works = copying([](int) {});
      expect_rooted(comm, run_rooted(comm, works, {on_root(comm, x)}, {.strategy = "row"}), x, 0,
                    "after the failure");
    });
  }
}

TEST(DistCall, AnErrorThatBlamesAnotherRankBlamesItOnAll) {
  run_ranks(3, [&](const CommunicatorPtr& comm) {
    const Operation fails = copying([&](int rank) {
      if (rank == 2) throw CommunicationError("rank 0 cannot be read", 0);
    });
    const auto told = test::caught<CommunicationError>(
        [&] { run_rooted(comm, fails, {on_root(comm, counting({12}))}, {.strategy = "row"}); });
    EXPECT_EQ(told.rank(), 0) << told.what();
    EXPECT_THAT(told.what(), HasSubstr("rank 0 cannot be read"));
  });
}

TEST(DistCall, PlansOnceAndReports) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const Tensor x = counting({12});
    int plans = 0;
    Operation counted = copying([](int) {});
    const auto plan = counted.plan;
    counted.plan = [&plans, plan](const PlanArguments& given) {
      ++plans;
      return plan(given);
    };
    for (int repeat = 0; repeat < 3; ++repeat) {
      run_rooted(comm, counted, {on_root(comm, x)}, {.strategy = "row"});
    }
    EXPECT_EQ(plans, 1);
    run_rooted(comm, counted, {on_root(comm, counting({13}))}, {.strategy = "row"});
    EXPECT_EQ(plans, 2);
    // Whatever a plan depends on makes another one.
    const Machine slow{.link_bandwidth = 1.0};
    run_rooted(comm, counted, {on_root(comm, counting({13}))},
               {.strategy = "row", .machine = slow});
    EXPECT_EQ(plans, 3);
    const Tensor ints = counting({13}, DType::kInt64);
    run_rooted(comm, counted, {on_root(comm, ints)}, {.strategy = "row"});
    EXPECT_EQ(plans, 4);
    run_rooted(comm, counted, {on_root(comm, ints)}, {.strategy = "root"});
    EXPECT_EQ(plans, 5);
    run_rooted(comm, counted, {comm->rank() == 1 ? ints : Tensor()}, {.strategy = "row"}, 1);
    EXPECT_EQ(plans, 6);
    const Sharding rows = split_over_ranks(3, 1, 0);
    run_sharded(counted, {laid_out(comm, ints, rows)}, {.strategy = "row"});
    EXPECT_EQ(plans, 7);
    run_sharded(counted, {laid_out(comm, ints, rows.with_blocks(0, {3, 5, 5}))},
                {.strategy = "row"});
    EXPECT_EQ(plans, 8);
    run_sharded(counted, {laid_out(comm, ints, rows)},
                {.strategy = "row", .output = Sharding::replicated(Mesh::line(3))});
    EXPECT_EQ(plans, 9);
    run_rooted(comm, counted, {on_root(comm, counting({13}))}, {.strategy = "row"});
    EXPECT_EQ(plans, 9);
    const Report& report = last_report();
    EXPECT_EQ(report.plan.op, "copying");
    EXPECT_EQ(report.plan.bytes(), 2 * 8 * 8);  // 4 + 4 of 13 elements there and back
    EXPECT_GT(report.bytes_sent, 0);
    EXPECT_GT(report.seconds, 0.0);
    EXPECT_THAT(report.to_string(), HasSubstr("copying: row"));
  });
}

TEST(DistCall, NamesBothCallsThatDoNotMatch) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    Operation mine = copying([](int) {});
    if (comm->rank() == 1) mine.text = "copying backwards";
    EXPECT_THAT(
        failure_of([&] { run_rooted(comm, mine, {on_root(comm, counting({3}))}); }),
        AllOf(HasSubstr("rank 0 called copying,"), HasSubstr("rank 1 called copying backwards")));
    EXPECT_THAT(failure_of([&] { run_rooted(comm, copying([](int) {}), {Tensor()}); }),
                HasSubstr("x was not given on rank 0"));
    EXPECT_THROW(run_sharded(copying([](int) {}), {DistTensor()}), ExecutionError);
  });
}

TEST(DistCall, LeavesSpansOfEveryRank) {
  trace::clear();
  trace::set_recording(true);
  run_ranks(2, [](const CommunicatorPtr& comm) {
    run_rooted(comm, copying([](int) {}), {on_root(comm, counting({8}))}, {.strategy = "row"});
  });
  trace::set_recording(false);
  bool has_call[2] = {};
  bool has_exchange[2] = {};
  for (const trace::Event& event : trace::events()) {
    if (event.rank > 1) continue;
    if (event.name == "copying [row]" && event.bytes > 0) has_call[event.rank] = true;
    if (event.name == "exchange" && event.category == "comm") has_exchange[event.rank] = true;
  }
  trace::clear();
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(has_call[rank]);
    EXPECT_TRUE(has_exchange[rank]);
  }
}

}  // namespace
}  // namespace cuop::dist
