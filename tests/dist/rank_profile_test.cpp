// Events of all ranks on one: what each operation cost, clocks, limits, and messages of strangers.
#include "cuop/dist/exec/rank_profile.h"

#include <gmock/gmock.h>

#include <random>

#include "cuop/dist/algo/matmul.h"
#include "cuop/dist/exec/profile_message.h"
#include "cuop/dist/exec/report.h"
#include "tests/dist/algo_test.h"
#include "tests/dist/recording.h"
#include "tests/error_of.h"

namespace cuop::dist {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace rank_test;  // NOLINT: the frame of these tests

trace::Event span(const std::string& category, const std::string& name, int64_t start_ns,
                  int64_t duration_ns) {
  trace::Event event;
  event.name = name;
  event.category = category;
  event.start_ns = start_ns;
  event.duration_ns = duration_ns;
  return event;
}

trace::Event call(const std::string& name, int64_t duration_ns, double floor,
                  std::vector<std::pair<int, int64_t>> sent_to) {
  trace::Event event = span("dist", name, 10, duration_ns);
  event.flops = 100;
  const auto figures = std::make_shared<CallFigures>();
  figures->predicted = 2e-9;
  figures->floor = floor;
  figures->measured.move_seconds = 3e-9;
  for (const auto& [rank, bytes] : sent_to) event.bytes += bytes;
  figures->sent_to = std::move(sent_to);
  event.detail = figures;
  return event;
}

TEST(RankProfile, CostsOfAnOperationOverRanks) {
  trace::Event part = call("inner", 5, 0, {});
  part.is_outermost = false;
  trace::Event on_stream = span("gpu", "matmul", 10, 999);
  on_stream.stream = "cuda:0 default stream";
  const std::vector<RankProfile> profiles = {
      {0,
       {},
       {call("matmul [row]", 40, 10e-9, {{1, 8}, {2, 4}}),
        call("matmul [row]", 20, 10e-9, {{1, 8}}), part, on_stream}},
      {1, {}, {call("matmul [row]", 100, 10e-9, {{0, 16}}), span("op", "matmul", 10, 30)}},
      {2, {}, {call("sum [keep]", 7, 0, {}), span("comm", "exchange", 10, 30)}}};
  const std::vector<OperationCost> costs = operation_costs(profiles);
  ASSERT_EQ(costs.size(), 4u);
  const OperationCost& matmul = costs[0];
  EXPECT_EQ(matmul.name, "matmul [row]");
  EXPECT_EQ(matmul.category, "dist");
  EXPECT_EQ(matmul.calls, 2);  // of rank 0
  EXPECT_DOUBLE_EQ(matmul.seconds, 100e-9);
  EXPECT_EQ(matmul.slowest, 1);
  EXPECT_DOUBLE_EQ(matmul.least_seconds, 60e-9);
  EXPECT_DOUBLE_EQ(matmul.move_seconds, 3e-9);
  EXPECT_DOUBLE_EQ(matmul.predicted, 2e-9);
  EXPECT_DOUBLE_EQ(matmul.floor, 10e-9);
  EXPECT_DOUBLE_EQ(matmul.share_of_floor(), 0.1);
  EXPECT_DOUBLE_EQ(matmul.flops, 200);
  EXPECT_EQ(matmul.bytes, 36);
  const std::map<std::pair<int, int>, int64_t> links = {{{0, 1}, 16}, {{0, 2}, 4}, {{1, 0}, 16}};
  EXPECT_EQ(matmul.links, links);
  EXPECT_EQ(costs[1].name, "sum [keep]");
  EXPECT_EQ(costs[1].floor, 0.0);  // unknown
  EXPECT_EQ(costs[1].share_of_floor(), 0.0);
  EXPECT_EQ(costs[2].category, "comm");
  EXPECT_EQ(costs[3].category, "op");
  EXPECT_TRUE(operation_costs({}).empty());
}

TEST(RankProfile, AGpusTimeCountsWhereTheHostDoesNotWait) {
  const auto seconds = [](trace::Event event) {
    event.gpu_ns = 500;
    return operation_costs({{0, {}, {event}}})[0].seconds;
  };
  EXPECT_DOUBLE_EQ(seconds(span("op", "add", 0, 20)), 500e-9);
  EXPECT_DOUBLE_EQ(seconds(span("op", "add", 0, 2000)), 500e-9);
  EXPECT_DOUBLE_EQ(seconds(span("comm", "exchange", 0, 2000)), 2000e-9);
  trace::Event on_gpu = call("add [row]", 2000, 0, {});
  EXPECT_DOUBLE_EQ(seconds(on_gpu), 2000e-9);
  const auto figures = std::make_shared<CallFigures>();
  figures->measured.is_on_gpu = true;
  on_gpu.detail = figures;
  EXPECT_DOUBLE_EQ(seconds(on_gpu), 500e-9);
}

TEST(RankProfile, OneTraceOfAllRanks) {
  std::vector<RankProfile> profiles = {{0, {}, {span("op", "add", 1000, 10)}, 3},
                                       {5, {-7, 2500}, {span("op", "add", 2000, 10)}}};
  profiles[1].events[0].rank = 5;
  const std::string json = to_chrome_json(profiles);
  EXPECT_THAT(json, AllOf(HasSubstr(R"("name":"rank 5")"),
                          HasSubstr(R"({"ph":"M","name":"process_labels","pid":5,"tid":0,)"
                                    R"("args":{"labels":"clock +- 2.5 us"}})"),
                          HasSubstr(R"("labels":"3 short events left out")")));
  profiles[0].left_out = 0;
  profiles[1].clock = {};
  EXPECT_THAT(to_chrome_json(profiles), Not(HasSubstr("process_labels")));
}

TEST(RankProfile, GathersTheCallsOfAllRanks) {
  for (const int ranks : rank_counts()) {
    for (const int root : {0, ranks - 1}) {
      const Recording recording;
      run_ranks(ranks, [&](const CommunicatorPtr& comm) {
        for (int repeat = 0; repeat < 2; ++repeat) {
          matmul_from_root(comm, on_root(comm, noise({13, 6})), on_root(comm, noise({6, 5})),
                           {.strategy = "row"});
        }
        const int64_t planned = 2 * last_report().plan.bytes();
        const double floor = last_report().plan.floor.seconds;
        const std::vector<RankProfile> profiles = gather_profiles(comm, root);
        if (comm->rank() != root) {
          EXPECT_TRUE(profiles.empty());
          return;
        }
        ASSERT_EQ(profiles.size(), static_cast<size_t>(ranks));
        for (int rank = 0; rank < ranks; ++rank) {
          const RankProfile& profile = profiles[static_cast<size_t>(rank)];
          EXPECT_EQ(profile.rank, rank);
          EXPECT_EQ(profile.left_out, 0);
          EXPECT_EQ(profile.clock.error_ns, 0);  // one process
          for (const trace::Event& event : profile.events) EXPECT_EQ(event.rank, rank);
        }
        const OperationCost cost = operation_costs(profiles).at(0);
        EXPECT_EQ(cost.name, "matmul [row]");
        EXPECT_EQ(cost.calls, 2);
        EXPECT_EQ(cost.bytes, planned);
        EXPECT_GE(cost.seconds, cost.least_seconds);
        EXPECT_GT(cost.least_seconds, 0.0);
        EXPECT_DOUBLE_EQ(cost.floor, 2 * floor);
        int64_t on_links = 0;
        for (const auto& [link, bytes] : cost.links) on_links += bytes;
        EXPECT_EQ(on_links, planned);
        EXPECT_THAT(to_chrome_json(profiles), HasSubstr("\"sent\":{"));
      });
    }
  }
}

TEST(RankProfile, KeepsCallsAndTheLongestOfTheRest) {
  std::vector<trace::Event> events;
  for (int64_t i = 0; i < 10; ++i) events.push_back(span("op", "add", i, 100 + i));
  events.push_back(span("dist", "sum [keep]", 3, 1));
  const SentEvents kept = read_events(write_events(events, 3, 1 << 20), 3);
  EXPECT_EQ(kept.left_out, 8);
  ASSERT_EQ(kept.events.size(), 3u);
  EXPECT_EQ(kept.events[0].duration_ns, 108);
  EXPECT_EQ(kept.events[1].duration_ns, 109);
  EXPECT_EQ(kept.events[2].category, "dist");
  for (const int64_t bytes : {int64_t{16}, int64_t{17}, int64_t{300}, int64_t{1000}}) {
    const std::string text = write_events(events, 100, bytes);
    EXPECT_LE(static_cast<int64_t>(text.size()), bytes);
    const SentEvents read = read_events(text, 100);
    EXPECT_EQ(read.left_out + static_cast<int64_t>(read.events.size()), 11);
  }
  EXPECT_EQ(read_events(write_events({}, 0, 1 << 20), 0).left_out, 0);
}

TEST(RankProfile, LongNamesAreCut) {
  const std::vector<trace::Event> events = {span("op", std::string(5000, 'x'), 0, 1)};
  EXPECT_EQ(read_events(write_events(events, 9, 1 << 20), 9).events.at(0).name,
            std::string(kLongestText, 'x'));
}

TEST(RankProfile, BytesOfStrangersAreRefused) {
  constexpr int64_t kMost = 1000;
  const Recording recording;
  std::string good;
  run_ranks(2, [&](const CommunicatorPtr& comm) {
    matmul_from_root(comm, on_root(comm, noise({4, 4})), on_root(comm, noise({4, 4})),
                     {.strategy = "row"});
    comm->barrier();
    if (comm->rank() == 0) good = write_events(trace::events(), kMost, 1 << 20);
  });
  ASSERT_FALSE(read_events(good, kMost).events.empty());
  const auto error = [&](const std::string& bytes) {
    return test::error_of<CommunicationError>([&] { read_events(bytes, kMost); });
  };
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_NE(error(good.substr(0, length)), "") << length;
  }
  EXPECT_THAT(error(good + 'x'), HasSubstr("too long"));
  EXPECT_THAT(test::error_of<CommunicationError>([&] { read_events(good, 0); }),
              HasSubstr("where 0 to 0 are possible"));
  // Any byte may be wrong: what is read is bounded, or refused.
  std::mt19937 random(1);
  for (int attempt = 0; attempt < 2000; ++attempt) {
    std::string bent = good;
    bent[random() % bent.size()] = static_cast<char>(random());
    try {
      RankProfile profile;
      profile.events = read_events(bent, kMost).events;
      EXPECT_LE(profile.events.size(), good.size());
      to_chrome_json(std::vector<RankProfile>{profile});
      operation_costs({profile});
    } catch (const CommunicationError&) {
      continue;
    }
  }
}

TEST(RankProfile, SaysOnAllRanksWhatIsWrong) {
  trace::clear();
  run_ranks(3, [](const CommunicatorPtr& comm) {
    EXPECT_THAT(failure_of([&] { gather_profiles(comm); }), HasSubstr("nothing is recorded"));
    EXPECT_THAT(failure_of([&] { gather_profiles(comm, 3); }), HasSubstr("3"));
    EXPECT_THAT(failure_of([&] {
                  gather_profiles(comm, 0, {-1, 100});
                }),
                HasSubstr("limits are -1 events"));
  });
  const Recording recording;
  run_ranks(3, [](const CommunicatorPtr& comm) {
    EXPECT_THAT(failure_of([&] {
                  gather_profiles(comm, 0, {comm->rank(), 100});
                }),
                HasSubstr("different calls"));
    EXPECT_EQ(gather_profiles(comm).empty(), comm->rank() != 0);  // the ranks go on
  });
}

}  // namespace
}  // namespace cuop::dist
