// Heartbeats between hosts, which are pretended here: pages say that they are of another one.
#include "cuop/dist/comm/heartbeat_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuop/core/text.h"
#include "cuop/dist/comm/heartbeat.h"
#include "tests/dist/socket_ranks.h"

namespace cuop::dist {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Life = Heartbeat::Life;

const std::string kKey = "known to the ranks of these tests alone";
const std::string kLoopback = "127.0.0.1";

/// A place to receive at, and what it says of itself.
struct Place {
  Datagrams datagrams{std::vector<std::string>{kLoopback}};
  Datagrams::Places places = datagrams.places();
};

std::unique_ptr<HostReports> reports_of(int rank, std::vector<Place>& places,
                                        const std::vector<uint64_t>& hosts,
                                        const std::string& key = kKey) {
  std::vector<Datagrams::Places> all;
  for (const Place& each : places) all.push_back(each.places);
  return std::make_unique<HostReports>(std::move(places[static_cast<size_t>(rank)].datagrams), rank,
                                       hosts, all, key);
}

RankReport beating(int rank, int64_t beats) { return {rank, false, {beats, 0, 0, false, {}}}; }

/// What has come within a moment.
std::vector<RankReport> heard(HostReports& reports, size_t awaited) {
  std::vector<RankReport> all;
  rank_test::comes_true([&] {
    reports.receive([&](const RankReport& each) { all.push_back(each); });
    return all.size() >= awaited;
  });
  return all;
}

TEST(HostReports, GoToEveryRankOfOtherHosts) {
  std::vector<Place> places(4);
  const std::vector<uint64_t> hosts{1, 1, 2, 3};
  const auto first = reports_of(0, places, hosts), second = reports_of(1, places, hosts),
             third = reports_of(2, places, hosts), fourth = reports_of(3, places, hosts);
  first->send({beating(0, 5), beating(1, 6)});
  for (HostReports* each : {third.get(), fourth.get()}) {
    const auto all = heard(*each, 2);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[1].page.beats, 6);
  }
  third->send({beating(2, 7)});
  EXPECT_EQ(heard(*second, 1).size(), 1u);
  EXPECT_EQ(heard(*first, 1).size(), 1u);
  second->receive([](const RankReport&) { FAIL() << "of its own host"; });
}

/// What strangers send to a rank is dropped: nonsense, other jobs' words, its own and old ones.
TEST(HostReports, OfStrangersAreNotBelieved) {
  std::vector<Place> places(3);
  const std::vector<uint64_t> hosts{1, 2, 2};
  const Datagrams::Places target = places[0].places;
  const auto mine = reports_of(0, places, hosts);
  Datagrams stranger(std::vector<std::string>{kLoopback});
  uint64_t number = 10;
  const auto say = [&](const std::string& key, int sender, const RankReport& rank) {
    stranger.send(target, write_reports(key, sender, number, {rank}).at(0));
  };
  say("another job's key, or a guess", 1, beating(1, 5));
  say(kKey, 0, beating(0, 5));  // reflected
  say(kKey, 1, beating(0, 5));  // of a rank that is not of the sender's host
  stranger.send(target, "");
  stranger.send(target, std::string(100, 'x'));
  stranger.send(target, std::string(60000, 'x'));
  const uint64_t old = number;
  say(kKey, 1, beating(1, 5));
  number = old;
  say(kKey, 1, beating(1, 6));  // again
  number = 2;
  say(kKey, 1, beating(1, 7));  // older
  say(kKey, 2, beating(2, 8));  // which its own numbers count for
  const auto all = heard(*mine, 2);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].page.beats, 5);
  EXPECT_EQ(all[1].page.beats, 8);
  EXPECT_EQ(mine->dropped(), 8);
}

/// Two hosts: rank 0 on one, ranks 1 and 2 on the other, each with a heartbeat of its own.
class TwoHosts : public ::testing::Test {
 protected:
  static constexpr double kLimit = 0.7;

  TwoHosts() {
    for (size_t rank = 0; rank < 3; ++rank) {
      ranks_.push_back(std::make_unique<Heartbeat>(kLimit));
      seen_by_0_.push_back(ranks_[rank]->place());
      seen_by_others_.push_back(ranks_[rank]->place());
    }
    for (size_t rank = 1; rank < 3; ++rank) seen_by_0_[rank].host ^= 1;
    seen_by_others_[0].host ^= 1;
  }
  void watch(int rank) {
    const std::vector<uint64_t> hosts{1, 2, 2};
    ranks_[static_cast<size_t>(rank)]->watch(rank, rank == 0 ? seen_by_0_ : seen_by_others_,
                                             reports_of(rank, places_, hosts));
  }
  static bool becomes(const Heartbeat& heartbeat, int rank, Life life) {
    return rank_test::comes_true([&] { return heartbeat.life(rank) == life; });
  }

  std::vector<Place> places_{3};
  std::vector<std::unique_ptr<Heartbeat>> ranks_;
  std::vector<PagePlace> seen_by_0_, seen_by_others_;
};

TEST_F(TwoHosts, KnowOfEachOtherOnceTheyHaveHeard) {
  watch(0);
  EXPECT_EQ(ranks_[0]->life(1), Life::kUnwatched);
  EXPECT_FALSE(ranks_[0]->has_missing());
  const int call = ranks_[2]->own_page().begin_call("all_reduce", 7, 1, 17, true);
  ranks_[2]->own_page().set_awaited(call, 0);
  watch(1);
  watch(2);
  EXPECT_TRUE(becomes(*ranks_[0], 1, Life::kBeating));
  EXPECT_TRUE(becomes(*ranks_[0], 2, Life::kBeating));
  EXPECT_TRUE(becomes(*ranks_[2], 0, Life::kBeating));
  EXPECT_TRUE(ranks_[0]->is_elsewhere(1));
  EXPECT_FALSE(ranks_[1]->is_elsewhere(2));
  ASSERT_TRUE(rank_test::comes_true([&] { return ranks_[0]->calls(2).size() == 1; }));
  const CallNote seen = ranks_[0]->calls(2)[0];
  EXPECT_EQ(seen.operation, "all_reduce");
  EXPECT_EQ(seen.number, 17);
  EXPECT_EQ(seen.awaited, 0);
  EXPECT_EQ(ranks_[0]->last_number(2), 17);
  EXPECT_TRUE(rank_test::comes_true([&] { return ranks_[0]->seconds_in(2, seen) > 0.2; }));
  ranks_[2]->own_page().end_call(call);
  EXPECT_TRUE(rank_test::comes_true([&] { return ranks_[0]->calls(2).empty(); }));
}

TEST_F(TwoHosts, SayWhoHasLeft) {
  for (const int rank : {0, 1, 2}) watch(rank);
  EXPECT_TRUE(becomes(*ranks_[0], 2, Life::kBeating));
  ranks_[2].reset();
  EXPECT_TRUE(becomes(*ranks_[0], 2, Life::kLeft));
  EXPECT_TRUE(becomes(*ranks_[0], 1, Life::kBeating));
  ranks_[0].reset();  // nobody else is there to tell
  EXPECT_TRUE(becomes(*ranks_[1], 0, Life::kLeft));
}

TEST_F(TwoHosts, ARankThatStandsStillIsStoppedAndAHostThatSaysNothingIsSilent) {
  std::vector<Place> places(3);
  std::vector<Datagrams::Places> all;
  for (const Place& each : places) all.push_back(each.places);
  HostReports others(std::move(places[1].datagrams), 1, {1, 2, 2}, all, kKey);
  ranks_[0]->watch(0, seen_by_0_,
                   std::make_unique<HostReports>(std::move(places[0].datagrams), 0,
                                                 std::vector<uint64_t>{1, 2, 2}, all, kKey));
  int64_t beats = 0;
  EXPECT_TRUE(rank_test::comes_true([&] {
    others.send({beating(1, ++beats), beating(2, 1)});
    const bool is_stopped = ranks_[0]->life(2) == Life::kStopped && ranks_[0]->has_missing();
    const std::string why = ranks_[0]->obituary(2);
    return is_stopped && ranks_[0]->life(1) == Life::kBeating &&
           why.find("has shown no heartbeat for") != std::string::npos;
  }));
  EXPECT_TRUE(becomes(*ranks_[0], 1, Life::kSilent));
  EXPECT_THAT(ranks_[0]->obituary(1), HasSubstr("nothing was heard of its host for"));
  // By a message that has come otherwise, before any report.
  bool counts = false;
  for (int attempt = 0; attempt < 5 && !counts; ++attempt) {
    ranks_[0]->note_life(1);
    counts = ranks_[0]->life(1) == Life::kBeating;
  }
  EXPECT_TRUE(counts);
  EXPECT_TRUE(rank_test::comes_true([&] {
    others.send({beating(1, ++beats), beating(2, beats)});
    return ranks_[0]->life(1) == Life::kBeating && ranks_[0]->life(2) == Life::kBeating &&
           !ranks_[0]->has_missing();
  }));
  // An older report that comes late takes nothing back; one of a death is the last word.
  others.send({beating(1, 1)});
  others.send({{2, true, {++beats, 0, 0, false, {}}}});
  EXPECT_TRUE(becomes(*ranks_[0], 2, Life::kDead));
  EXPECT_THAT(ranks_[0]->obituary(2), HasSubstr("has died"));
}

TEST(Datagrams, ListenAtTheirAddressesAlone) {
  const Datagrams some(std::vector<std::string>{"no address", kLoopback, "127.0.0.2", "127.0.0.3"});
  EXPECT_EQ(some.descriptors().size(), Datagrams::kPlaces);
  EXPECT_STREQ(some.places()[0].address.data(), "127.0.0.1");
  EXPECT_STREQ(some.places()[1].address.data(), "127.0.0.2");
  EXPECT_GT(some.places()[0].port, 0);
  const Datagrams none(std::vector<std::string>{"203.0.113.1", "x"});  // not this host's
  EXPECT_THAT(none.descriptors(), IsEmpty());
  EXPECT_FALSE(own_addresses().empty());
}

}  // namespace
}  // namespace cuop::dist
