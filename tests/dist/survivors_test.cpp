// What ranks that are left agree on, and who of them is stuck, as plain values.
#include "cuop/dist/comm/survivors.h"

#include <gtest/gtest.h>

#include "cuop/dist/comm/health.h"

namespace cuop::dist {
namespace {

TEST(Survivors, AListTravelsAsText) {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 64, 4096}) {
    Survivors::List list(static_cast<size_t>(ranks));
    for (size_t rank = 0; rank < list.size(); ++rank) list[rank] = rank % 3 != 1;
    Survivors heard(ranks);
    heard.take_list(0, 1, Survivors::text_of(list));
    ASSERT_NE(heard.list_of(0, 1), nullptr);
    EXPECT_EQ(*heard.list_of(0, 1), list);
  }
  EXPECT_EQ(Survivors::text_of({true, false, true, true, true}), "d1");
}

TEST(Survivors, WhatIsNoListIsNotTaken) {
  Survivors heard(5);
  for (const char* text : {"", "f", "fff", "g1", "1G"}) heard.take_list(0, 1, text);
  EXPECT_EQ(heard.list_of(0, 1), nullptr);
}

TEST(Survivors, ShrinksAreToldApart) {
  Survivors heard(2);
  heard.take_here(1, 2);
  EXPECT_TRUE(heard.is_here(1, 1));  // who is in the second one was in the first
  EXPECT_TRUE(heard.is_here(1, 2));
  EXPECT_FALSE(heard.is_here(1, 3));
  EXPECT_FALSE(heard.is_here(0, 1));
  heard.take_list(1, 2, "3");
  heard.take_list(1, 1, "1");
  EXPECT_EQ(heard.list_of(1, 1), nullptr);
  EXPECT_EQ(*heard.list_of(1, 2), Survivors::List({true, true}));
}

using State = RankHealth::State;

SeenRank outside() { return {}; }
SeenRank waiting(double seconds, std::vector<int> awaited) {
  SeenRank rank;
  rank.health.operation = "recv";
  rank.health.seconds = seconds;
  rank.awaited = std::move(awaited);
  return rank;
}
SeenRank gone(State state) {
  SeenRank rank;
  rank.health.state = state;
  return rank;
}
std::vector<bool> stuck(std::vector<SeenRank> ranks, double limit = 1.0) {
  mark_stuck(ranks, limit);
  std::vector<bool> result;
  for (const SeenRank& rank : ranks) result.push_back(rank.health.state == State::kStuck);
  return result;
}

TEST(Stuck, WhoWaitsInACircleIs) {
  EXPECT_EQ(stuck({waiting(2, {1}), waiting(2, {0}), waiting(2, {0})}),
            (std::vector{true, true, true}));
  EXPECT_EQ(stuck({waiting(2, {0})}), std::vector{true});
}

TEST(Stuck, WhoWaitsForOneThatMayComeIsNot) {
  EXPECT_EQ(stuck({waiting(2, {1}), outside()}), (std::vector{false, false}));
  EXPECT_EQ(stuck({waiting(2, {1}), waiting(2, {2}), outside()}),
            (std::vector{false, false, false}));
  EXPECT_EQ(stuck({waiting(2, {1}), waiting(0.5, {0})}), (std::vector{false, false}));
  EXPECT_EQ(stuck({waiting(2, {1, 2}), waiting(2, {0}), outside()}),
            (std::vector{false, false, false}));
}

TEST(Stuck, WhoIsAwaitedByAllAndWaitsForNobodyIs) {
  EXPECT_EQ(stuck({waiting(2, {1}), waiting(2, {})}), (std::vector{false, true}));
}

TEST(Stuck, TheDeadAndTheStoppedKeepTheirNames) {
  for (const State state : {State::kDead, State::kStopped, State::kLeft, State::kUnwatched}) {
    std::vector<SeenRank> ranks{waiting(2, {1}), gone(state)};
    mark_stuck(ranks, 1.0);
    EXPECT_EQ(ranks[0].health.state, State::kAlive);
    EXPECT_EQ(ranks[1].health.state, state);
  }
}

TEST(Stuck, StatesHaveNames) {
  const std::pair<State, const char*> names[] = {
      {State::kAlive, "alive"}, {State::kStuck, "stuck"}, {State::kStopped, "stopped"},
      {State::kLeft, "left"},   {State::kDead, "dead"},   {State::kUnwatched, "unwatched"},
      {State::kLost, "lost"}};
  for (const auto& [state, name] : names) EXPECT_STREQ(gone(state).health.name(), name);
}

}  // namespace
}  // namespace cuop::dist
