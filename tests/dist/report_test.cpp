// What calls leave behind: predicted beside measured, and the record of all calls in the trace.
#include "cuop/dist/exec/report.h"

#include <gmock/gmock.h>

#include <map>

#include "cuop/core/text.h"
#include "cuop/dist/algo/matmul.h"
#include "cuop/dist/algo/reduce.h"
#include "cuop/dist/plan/map_plan.h"
#include "tests/dist/algo_test.h"
#include "tests/dist/recording.h"

namespace cuop::dist {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace rank_test;  // NOLINT: the frame of these tests

TEST(Report, HasWhatWasMeasuredBesideWhatWasPredicted) {
  for (const int ranks : rank_counts()) {
    std::vector<int64_t> sent(static_cast<size_t>(ranks));
    int64_t planned = 0;
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Tensor a = noise({13, 6});
      matmul_from_root(comm, on_root(comm, a), on_root(comm, noise({6, 5})), {.strategy = "row"});
      const Report report = last_report();
      ASSERT_TRUE(report.plan.measured);
      const Measured& measured = *report.plan.measured;
      EXPECT_EQ(measured.rank, comm->rank());
      EXPECT_EQ(measured.is_on_gpu, !home().is_cpu());
      EXPECT_GT(measured.work_seconds, 0.0);
      EXPECT_GE(measured.seconds, measured.work_seconds);
      EXPECT_GE(measured.compute_seconds(), 0.0);
      EXPECT_GE(measured.move_seconds, 0.0);
      if (ranks > 1) {
        EXPECT_GT(measured.move_seconds, 0.0);
      }
      EXPECT_EQ(report.seconds, measured.seconds);
      EXPECT_LE(measured.bytes_sent, report.bytes_sent);
      sent[static_cast<size_t>(comm->rank())] = measured.bytes_sent;
      if (comm->rank() == 0) planned = report.plan.bytes();
      EXPECT_THAT(
          report.plan.explain(),
          AllOf(HasSubstr("predicted      measured"), HasSubstr("\n  moves "),
                HasSubstr("\n  arithmetic "), HasSubstr("\n  whole call "), HasSubstr("\n  floor "),
                HasSubstr(cat("measured on rank ", comm->rank()))));
      EXPECT_THAT(report.plan.to_json(), HasSubstr("\"measured\":{\"rank\":"));
    });
    int64_t total = 0;
    for (const int64_t each : sent) total += each;
    if (ranks > 1 || home().is_cpu()) {
      EXPECT_EQ(total, planned) << ranks;  // whole elements travel once
    } else {
      EXPECT_LE(total, planned);  // of a process that uses all its GPUs: what its first one sent
    }
  }
}

TEST(Report, APlanThatWasNotFollowedHasNothingMeasured) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const Tensor a = noise({8, 8});
    matmul_from_root(comm, on_root(comm, a), on_root(comm, a));
    Plan plan = last_report().plan;
    EXPECT_THAT(plan.to_string(), HasSubstr(" measured"));
    const uint64_t followed = plan.hash();
    plan.measured.reset();
    const uint64_t planned = plan.hash();
    EXPECT_NE(planned, followed);
    for (const std::string& text : {plan.explain(), plan.to_string(), plan.to_json()}) {
      EXPECT_THAT(text, Not(HasSubstr("measured")));
    }
    // The plan that is remembered is not touched: ranks still agree on it.
    matmul_from_root(comm, on_root(comm, a), on_root(comm, a));
    plan = last_report().plan;
    plan.measured.reset();
    EXPECT_EQ(plan.hash(), planned);
  });
}

TEST(Report, CallsAreRecordedWhileATraceIs) {
  const Recording recording;
  constexpr int kCount = 3;
  run_ranks(kCount, [](const CommunicatorPtr& comm) {
    const DistTensor x = laid_out(comm, noise({9, 4}), split_over_ranks(comm->size(), 2, 0));
    reduce(x, {.kind = ReduceKind::kSum});
    matmul_from_root(comm, on_root(comm, noise({4, 4})), on_root(comm, noise({4, 4})),
                     {.strategy = "row"});
  });
  std::map<std::string, int> calls;
  int64_t sent = 0, sent_by_matmul = 0, planned = 0;
  for (const Report& report : recorded_reports()) {
    ++calls[report.plan.op];
    ASSERT_TRUE(report.plan.measured);
    sent += report.plan.measured->bytes_sent;
    if (report.plan.op != "matmul") continue;
    sent_by_matmul += report.plan.measured->bytes_sent;
    planned = report.plan.bytes();
    if (!home().is_cpu()) {
      EXPECT_GT(report.plan.measured->gpu_seconds, 0.0);
    }
  }
  EXPECT_EQ(calls["matmul"], kCount);
  EXPECT_EQ(calls.size(), 2u);
  EXPECT_EQ(sent_by_matmul, planned);

  int64_t on_links = 0;
  for (const trace::Event& event : trace::events()) {
    if (event.category != "dist") continue;
    const auto* record = dynamic_cast<const CallDetail*>(event.detail.get());
    ASSERT_NE(record, nullptr) << event.name;
    int64_t from_here = 0;
    for (const auto& [to, bytes] : record->sent_to) {
      EXPECT_NE(to, event.rank);
      EXPECT_GT(bytes, 0);
      from_here += bytes;
    }
    EXPECT_EQ(from_here, record->filed.measured.bytes_sent);
    on_links += from_here;
  }
  EXPECT_EQ(on_links, sent);
}

TEST(Report, NothingIsRecordedWithoutATrace) {
  trace::clear();
  run_ranks(2, [](const CommunicatorPtr& comm) {
    reduce(laid_out(comm, noise({6}), split_over_ranks(2, 1, 0)), {.kind = ReduceKind::kSum});
  });
  EXPECT_TRUE(recorded_reports().empty());
}

TEST(Report, ACallThatFailsLeavesASpanWithoutAPlan) {
  const Recording recording;
  run_ranks(2, [](const CommunicatorPtr& comm) {
    EXPECT_NE(failure_of([&] {
                matmul_from_root(comm, on_root(comm, noise({2, 3})), on_root(comm, noise({2, 3})));
              }),
              "");
  });
  EXPECT_TRUE(recorded_reports().empty());
  int spans = 0;
  for (const trace::Event& event : trace::events()) {
    spans += event.category == "dist" && event.name.starts_with("matmul") ? 1 : 0;
  }
  EXPECT_EQ(spans, 2);
}

}  // namespace
}  // namespace cuop::dist
