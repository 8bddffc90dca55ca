// Who is blamed when, over a network whose messages the test writes: what a real one shows by
// chance.
#include "cuop/dist/comm/failure_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::dist {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kGivenByRank2 = "recv: rank 2 of 4 waited 1 s for rank 3";

/// What it sends is kept, what arrives is what the test has put there.
class WrittenTransport : public Transport {
 public:
  explicit WrittenTransport(int size, int rank = 0) : size_(size), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool is_near(int) const override { return true; }
  std::string_view kind() const override { return "written"; }
  std::unique_ptr<Delivery> post_send(const void*, int64_t, const Envelope&) override {
    return nullptr;
  }
  std::unique_ptr<Delivery> post_recv(void*, int64_t, const Envelope&) override { return nullptr; }
  void send_control(int dst, const Control& message) noexcept override {
    sent.push_back(message);
    if (on_send) on_send(dst, message);
  }
  std::optional<Control> poll_control() override {
    if (arrived.empty()) return std::nullopt;
    Control message = arrived.front();
    arrived.pop_front();
    return message;
  }
  void flush() noexcept override { flushed = sent.size(); }
  void idle(int looks) override {
    if (on_idle) on_idle(looks);
  }
  std::shared_ptr<Transport> split(int, const SplitGroup&) override { return nullptr; }
  std::shared_ptr<Transport> shrink(const SplitGroup&) override { return nullptr; }
  void note_failure(bool) noexcept override {}
  uint64_t context() const override { return 7; }
  bool is_lost(int rank) override { return rank == lost; }
  void note_gone(int rank) noexcept override { gone.push_back(rank); }

  int count(ControlKind kind) const {
    return static_cast<int>(std::count_if(
        sent.begin(), sent.end(), [&](const Control& message) { return message.kind == kind; }));
  }

  int lost = -1;
  std::vector<int> gone;
  std::vector<Control> sent;
  size_t flushed = 0;  // so many of those
  std::deque<Control> arrived;
  std::function<void(int dst, const Control&)> on_send;
  std::function<void(int looks)> on_idle;

 private:
  int size_, rank_;
};

/// Rank 0 of 4 and, split from it, rank 0 of 3 (ranks 0, 1, 3 of all).
struct Family {
  std::shared_ptr<WrittenTransport> all = std::make_shared<WrittenTransport>(4);
  std::shared_ptr<WrittenTransport> some = std::make_shared<WrittenTransport>(3);
  std::shared_ptr<FailureWatch> root = std::make_shared<FailureWatch>(all);
  std::shared_ptr<FailureWatch> part =
      std::make_shared<FailureWatch>(some, root, std::vector<int>{0, 1, 3});

  /// Every rank but `silent` says at once that it waits for `awaited`.
  void answer_pings(int silent, int awaited) {
    all->on_send = [this, silent, awaited](int dst, const Control& message) {
      if (message.kind != ControlKind::kPing || dst == silent) return;
      all->arrived.push_back({dst, ControlKind::kPong, message.epoch, awaited, "recv"});
    };
  }
};

/// What `call` raises: its text and the blamed rank.
std::pair<std::string, int> failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const CommunicationError& error) {
    return {error.what(), error.rank()};
  }
  return {"nothing was raised", -2};
}

TEST(FailureWatch, WhoAnswersNothingIsBlamed) {
  Family family;
  family.answer_pings(3, 3);
  const auto [text, rank] = failure_of([&] { family.root->expire("recv", 1, 1.0); });
  EXPECT_EQ(rank, 3);
  EXPECT_THAT(text, AllOf(HasSubstr("waited 1 s for rank 1"), HasSubstr("not answering: rank 3")));
  EXPECT_EQ(family.all->count(ControlKind::kAbort), 3);
}

TEST(FailureWatch, WhoWaitsForARankThatThereIsNotAnswersNothing) {
  Family family;
  family.answer_pings(-1, 1 << 30);
  EXPECT_EQ(failure_of([&] { family.root->expire("recv", 1, 1.0); }).second, 1);
}

// Ranks 0 and 2 come to their deadlines together; rank 2 was the first to tell whom it blames.
TEST(FailureWatch, AtASimultaneousExpiryTheFirstToldIsTheCause) {
  Family family;
  family.all->on_send = [&](int dst, const Control& message) {
    if (message.kind != ControlKind::kPing || dst != 2) return;
    family.all->arrived.push_back({2, ControlKind::kAbort, 0, 3, kGivenByRank2});
  };
  const auto [text, rank] = failure_of([&] { family.root->expire("bcast", 1, 1.0); });
  EXPECT_EQ(rank, 3);
  EXPECT_EQ(text, cat("bcast: rank 0 of 4 cannot go on: ", kGivenByRank2));
  EXPECT_EQ(family.all->count(ControlKind::kAbort), 0);  // all have been told by rank 2
}

// The same where the wait is in a communicator that was split off: first the whole fails, then the
// part alone, whose failure says nothing about the whole.
TEST(FailureWatch, AtASimultaneousExpiryInAPartTheFirstToldIsTheCause) {
  for (const bool is_of_part : {false, true}) {
    Family family;
    family.all->on_send = [&](int dst, const Control& message) {
      if (message.kind != ControlKind::kPing) return;
      family.all->arrived.push_back({dst, ControlKind::kPong, message.epoch, 0, "recv"});
      if (dst != 3) return;
      auto& transport = is_of_part ? family.some : family.all;
      transport->arrived.push_back({2, ControlKind::kAbort, 0, 3, kGivenByRank2});
    };
    const auto [text, rank] = failure_of([&] { family.part->expire("bcast", 1, 1.0); });
    EXPECT_EQ(rank, 3);
    EXPECT_THAT(text, AllOf(HasSubstr("cannot go on"), HasSubstr(kGivenByRank2)));
    EXPECT_EQ(family.all->count(ControlKind::kAbort), 0);
    EXPECT_EQ(family.some->count(ControlKind::kAbort), 0);
    EXPECT_EQ(family.root->failure().empty(), is_of_part);
  }
}

/// Rank 0 has told rank 1 of its failure and not yet rank 2, which waits for rank 1. That raises,
/// answers no more, and may be gone.
TEST(FailureWatch, WhoLeavesBecauseOfAnothersFailureIsNotTakenForItsCause) {
  const auto one = std::make_shared<WrittenTransport>(3, 1);
  const auto two = std::make_shared<WrittenTransport>(3, 2);
  FailureWatch first(one), second(two);
  one->on_send = [&](int dst, const Control& message) {
    if (dst == 2) two->arrived.push_back(message);
  };
  const std::string cause = "rank 0 of 3 aborted: enough";
  one->arrived.push_back({0, ControlKind::kAbort, 0, 0, cause});
  EXPECT_EQ(failure_of([&] { first.check("barrier"); }).second, 0);
  EXPECT_EQ(one->flushed, one->sent.size()) << "it may leave at once";
  const auto [text, rank] = failure_of([&] { second.expire("barrier", 1, 1.0); });
  EXPECT_EQ(rank, 0);
  EXPECT_EQ(text, cat("barrier: rank 2 of 3 cannot go on: ", cause));
  // And it passes it on in its turn, for rank 0 may have reached only one.
  EXPECT_EQ(two->count(ControlKind::kPassedOn), 2);
}

/// Once, and not what is over: the others have gone on to the next epoch.
TEST(FailureWatch, AFailureIsPassedOnOnceAndNotAfterTheRecovery) {
  Family family;
  for (const ControlKind kind : {ControlKind::kAbort, ControlKind::kPassedOn}) {
    for (const int src : {2, 1}) family.all->arrived.push_back({src, kind, 0, 3, kGivenByRank2});
  }
  EXPECT_EQ(family.root->failure(), kGivenByRank2);
  EXPECT_EQ(family.all->count(ControlKind::kPassedOn), 3);
  EXPECT_EQ(family.all->sent.back().blamed, 3);
  for (const int src : {1, 2, 3}) {
    family.all->arrived.push_back({src, ControlKind::kMeet, 1, -1, ""});
  }
  family.root->recover(60.0);
  family.all->arrived.push_back({3, ControlKind::kPassedOn, 0, 3, kGivenByRank2});
  EXPECT_EQ(family.root->failure(), "");
  EXPECT_EQ(family.all->count(ControlKind::kPassedOn), 3);
}

// Who ends a call of a part because of a failure around it does not cause that.
TEST(FailureWatch, AnAbortInAPartNamesWhomTheFailureAroundItNames) {
  Family family;
  family.all->arrived.push_back({2, ControlKind::kAbort, 0, 2, "rank 2 of 4 aborted: chaos"});
  EXPECT_EQ(failure_of([&] { family.part->check("barrier"); }).second, 2);
  family.part->abort("sum: the call cannot go on");
  ASSERT_EQ(family.some->count(ControlKind::kAbort), 2);
  EXPECT_EQ(family.some->sent.back().blamed, 2);
}

TEST(FailureWatch, AnErrorOfThisRanksOwnIsToldWithItsText) {
  Family family;
  family.part->tell("exchange", "copy: CUDA_ERROR_ILLEGAL_ADDRESS");
  ASSERT_EQ(family.some->count(ControlKind::kAbort), 2);
  EXPECT_EQ(family.some->sent.back().blamed, 0);
  EXPECT_EQ(family.some->sent.back().text,
            "exchange: rank 0 of 3 failed: copy: CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_TRUE(family.part->is_reported());
  EXPECT_EQ(family.root->failure(), "");
}

TEST(FailureWatch, TheFirstFailureStays) {
  Family family;
  family.all->arrived.push_back({2, ControlKind::kAbort, 0, 3, kGivenByRank2});
  family.all->arrived.push_back({1, ControlKind::kAbort, 0, 2, "rank 1 of 4 waited for rank 2"});
  const auto [text, rank] = failure_of([&] { family.root->check("send"); });
  EXPECT_EQ(rank, 3);
  EXPECT_THAT(text, Not(HasSubstr("waited for rank 2")));
  family.root->abort("given up as well");
  EXPECT_EQ(family.root->failure(), kGivenByRank2);
  EXPECT_EQ(family.all->count(ControlKind::kAbort), 0);
}

TEST(FailureWatch, AnAbortOfAnEarlierEpochIsNoNewsAndOneOfTheNextWaits) {
  Family family;
  family.all->arrived.push_back({2, ControlKind::kAbort, -1, 3, "old"});
  EXPECT_EQ(family.root->failure(), "");
  // Rank 2 has recovered before this rank and failed again.
  family.all->arrived.push_back({2, ControlKind::kAbort, 1, 3, "again"});
  EXPECT_EQ(family.root->failure(), "");
  for (const int src : {1, 2, 3}) {
    family.all->arrived.push_back({src, ControlKind::kMeet, 1, -1, ""});
  }
  family.root->recover(1.0);
  EXPECT_EQ(family.root->epoch(), 1);
  EXPECT_EQ(family.root->failure(), "again");
}

// Ranks that wait for each other made different calls: nobody is lost, the communicator fails.
TEST(FailureWatch, WhoAnswersIsNotLost) {
  Family family;
  family.answer_pings(-1, 0);
  const auto [text, rank] = failure_of([&] { family.part->expire("bcast", 2, 1.0); });
  EXPECT_EQ(rank, 3);
  EXPECT_THAT(text, AllOf(HasSubstr("for rank 2 (rank 3 of all)"), HasSubstr("which is in recv")));
  EXPECT_EQ(family.root->failure(), "");
  EXPECT_EQ(family.some->count(ControlKind::kAbort), 2);
}

// Rank 0 of 4 shrinks while the others say what the test has them say.
struct Shrinking {
  std::shared_ptr<WrittenTransport> all = std::make_shared<WrittenTransport>(4);
  FailureWatch watch{all};

  void say(int src, ControlKind kind, const std::string& text = "") {
    all->arrived.push_back({src, kind, 1, -1, text});
  }
};

TEST(FailureWatch, ALostRankIsNotWaitedForInAShrink) {
  Shrinking with;
  with.all->lost = 2;
  for (const int src : {1, 3}) with.say(src, ControlKind::kHere);
  for (const int src : {1, 3}) with.say(src, ControlKind::kSurvivors, "b");
  EXPECT_THAT(with.watch.agree_on_survivors(60.0), ::testing::ElementsAre(0, 1, 3));
  EXPECT_THAT(with.all->gone, ::testing::ElementsAre(2));
  EXPECT_EQ(with.all->sent.back().text, "b");
}

// Rank 1 has been here when rank 0 looked, and has not when the others did: what the last turns say
// holds.
TEST(FailureWatch, TheListOfALaterTurnIsTaken) {
  Shrinking with;
  for (const int src : {1, 2, 3}) with.say(src, ControlKind::kHere);
  with.say(2, ControlKind::kSurvivors, "d");
  with.say(3, ControlKind::kSurvivors, "d");
  with.all->lost = 1;
  EXPECT_THAT(with.watch.agree_on_survivors(60.0), ::testing::ElementsAre(0, 2, 3));
}

TEST(FailureWatch, WhoIsNotOnTheListIsLeftOut) {
  Shrinking with;
  for (const int src : {1, 2, 3}) with.say(src, ControlKind::kHere);
  with.say(1, ControlKind::kSurvivors, "e");
  const auto [text, rank] = failure_of([&] { with.watch.agree_on_survivors(60.0); });
  EXPECT_EQ(rank, 0);
  EXPECT_THAT(text, HasSubstr("was left out"));
}

TEST(FailureWatch, ARecoveryDoesNotWaitForWhoHasEnded) {
  Shrinking with;
  with.all->lost = 3;
  for (const int src : {1, 2}) with.all->arrived.push_back({src, ControlKind::kMeet, 1, -1, ""});
  const auto [text, rank] = failure_of([&] { with.watch.recover(60.0); });
  EXPECT_EQ(rank, 3);
  EXPECT_THAT(text, AllOf(HasSubstr("it has ended"), HasSubstr("shrink")));
}

/// It has come, and ended once all had: what it has sent may be seen after its end.
TEST(FailureWatch, WhoEndsAfterTheRecoveryIsNotBlamedInIt) {
  Shrinking with;
  with.all->lost = 3;
  for (const int src : {1, 2}) with.say(src, ControlKind::kMeet);
  with.all->on_idle = [&](int looks) {
    if (looks == 5) with.say(3, ControlKind::kMeet);
  };
  with.watch.recover(60.0);
  EXPECT_EQ(with.watch.epoch(), 1);
  EXPECT_EQ(with.all->flushed, with.all->sent.size()) << "this rank may end next";
}

TEST(FailureWatch, WhoRecoversAndWhoShrinksRaiseBoth) {
  Shrinking with;
  with.say(2, ControlKind::kHere);
  auto [text, rank] = failure_of([&] { with.watch.recover(60.0); });
  EXPECT_EQ(rank, 2);
  EXPECT_THAT(text, HasSubstr("recover: rank 0 of 4 waits for rank 2, which has called shrink"));
  EXPECT_EQ(with.all->count(ControlKind::kMeetGivenUp), 3);
  EXPECT_EQ(with.all->sent.back().text, "shrink");

  Shrinking other;
  other.say(2, ControlKind::kMeet);
  std::tie(text, rank) = failure_of([&] { other.watch.agree_on_survivors(60.0); });
  EXPECT_EQ(rank, 2);
  EXPECT_THAT(text, HasSubstr("shrink: rank 0 of 4 waits for rank 2, which has called recover"));
  EXPECT_EQ(other.all->count(ControlKind::kHereGivenUp), 3);
  // It was none: the next one has its number on all ranks.
  for (const int src : {1, 2, 3}) other.say(src, ControlKind::kHere);
  for (const int src : {1, 2, 3}) other.say(src, ControlKind::kSurvivors, "f");
  EXPECT_THAT(other.watch.agree_on_survivors(60.0), ::testing::ElementsAre(0, 1, 2, 3));
}

/// The first that sees it may be gone from its meeting before the others have seen it there.
TEST(FailureWatch, WhoHearsThatMeetingsDifferRaisesAsWell) {
  Shrinking with;
  with.say(1, ControlKind::kMeet);
  with.all->on_idle = [&](int) {
    with.all->arrived.push_back({1, ControlKind::kMeetGivenUp, 1, 3, "shrink"});
    with.all->on_idle = nullptr;
  };
  auto [text, rank] = failure_of([&] { with.watch.recover(60.0); });
  EXPECT_EQ(rank, 3);
  EXPECT_THAT(text, HasSubstr("which has called shrink"));
  // Rank 3 gives up in its turn, and all come again: that is no news.
  with.say(3, ControlKind::kHere);
  with.all->on_idle = [&](int) {
    with.all->arrived.push_back({3, ControlKind::kHereGivenUp, 1, 1, "recover"});
    for (const int src : {1, 2, 3}) with.say(src, ControlKind::kMeet);
    with.all->on_idle = nullptr;
  };
  with.watch.recover(60.0);
  EXPECT_EQ(with.watch.epoch(), 1);
}

/// Which has raised, and ended for it.
TEST(FailureWatch, WhoHearsItFromARankThatHasEndedRaisesAsWell) {
  Shrinking with;
  for (const int src : {2, 3}) with.say(src, ControlKind::kHere);
  with.all->on_idle = [&](int) {
    with.all->on_idle = nullptr;
    with.say(1, ControlKind::kMeet);
    with.all->arrived.push_back({1, ControlKind::kMeetGivenUp, 1, 0, "shrink"});
    with.all->lost = 1;
  };
  const auto [text, rank] = failure_of([&] { with.watch.agree_on_survivors(60.0); });
  EXPECT_EQ(rank, 1);
  EXPECT_THAT(text, HasSubstr("which has called recover"));
}

TEST(FailureWatch, WhoIsGoneIsBlamedBeforeThoseWhoShrinkForThat) {
  Shrinking with;
  with.all->lost = 3;
  with.say(1, ControlKind::kHere);
  EXPECT_EQ(failure_of([&] { with.watch.recover(60.0); }).second, 3);
  // And who shrinks goes on when the others have heard of it too.
  with.say(2, ControlKind::kMeet);
  with.all->on_idle = [&](int looks) {
    if (looks != 5) return;
    with.all->arrived.push_back({2, ControlKind::kMeetGivenUp, 1, -1, ""});
    with.say(2, ControlKind::kHere);
    for (const int src : {1, 2}) with.say(src, ControlKind::kSurvivors, "7");
  };
  EXPECT_THAT(with.watch.agree_on_survivors(60.0), ::testing::ElementsAre(0, 1, 2));
}

/// Rank 0 is the first whose recovery is in vain: the others raise when they see it shrink.
TEST(FailureWatch, AfterARecoveryInVainAShrinkWaitsForThoseWhoFollow) {
  Shrinking with;
  for (const int src : {1, 2}) with.say(src, ControlKind::kMeet);
  const auto [text, rank] = failure_of([&] { with.watch.recover(0.0); });
  EXPECT_EQ(rank, 3);
  EXPECT_THAT(text, HasSubstr("waited 0 s for rank 3"));
  EXPECT_EQ(with.all->sent.back().text, "");
  const auto start = std::chrono::steady_clock::now();
  with.all->on_idle = [&](int) {
    if (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(500)) return;
    with.all->on_idle = nullptr;
    for (const int src : {1, 2}) {
      with.all->arrived.push_back({src, ControlKind::kMeetGivenUp, 1, 0, "shrink"});
    }
    for (const int src : {1, 2, 3}) with.say(src, ControlKind::kHere);
    for (const int src : {1, 2, 3}) with.say(src, ControlKind::kSurvivors, "f");
  };
  EXPECT_THAT(with.watch.agree_on_survivors(60.0), ::testing::ElementsAre(0, 1, 2, 3));
}

TEST(FailureWatch, WhoHasGivenUpItsRecoveryHasNotCome) {
  Shrinking with;
  for (const int src : {1, 2, 3}) with.say(src, ControlKind::kMeet);
  with.all->arrived.push_back({3, ControlKind::kMeetGivenUp, 1, -1, ""});
  EXPECT_EQ(failure_of([&] { with.watch.recover(0.0); }).second, 3);
  with.say(3, ControlKind::kMeet);
  with.watch.recover(60.0);
  EXPECT_EQ(with.watch.epoch(), 1);
}

/// Those who shrank without this rank and ended have not been lost in its barrier.
TEST(FailureWatch, WhoHasEndedIsNamedByTheMeetingItWentOnFrom) {
  Shrinking with;
  with.say(1, ControlKind::kHere);
  with.watch.poll();
  auto [text, rank] = failure_of([&] { with.watch.lose("barrier", 1, "it has ended"); });
  EXPECT_EQ(rank, 1);
  EXPECT_THAT(text, HasSubstr("waits for rank 1, which has called shrink: it has ended"));
  Shrinking late;
  late.say(1, ControlKind::kHere);
  late.all->on_idle = nullptr;
  std::tie(text, rank) = failure_of([&] { late.watch.expire("barrier", 1, 0.5); });
  EXPECT_EQ(rank, 1);
  EXPECT_THAT(text, HasSubstr("waited 0.5 s for rank 1, which has called shrink"));
}

}  // namespace
}  // namespace cuop::dist
