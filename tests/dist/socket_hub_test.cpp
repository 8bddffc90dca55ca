#include "cuop/dist/comm/socket_hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <vector>

#include "cuop/core/error.h"
#include "tests/dist/socket_ranks.h"

namespace cuop::dist {
namespace {

using rank_test::comes_true;
using testing::HasSubstr;

constexpr int64_t kLong = 32'000'000;

/// Ranks 0 and 1 in one process.
struct Hubs {
  explicit Hubs(rank_test::LinkPair pair = rank_test::connected_pair())
      : a(0, links(1, std::move(pair.a)), {"here", "here"}),
        b(1, links(0, std::move(pair.b)), {"here", "here"}) {}
  static std::vector<Socket> links(size_t peer, Socket link) {
    std::vector<Socket> all(2);
    all[peer] = std::move(link);
    return all;
  }
  /// Until it holds, both move what they can.
  template <class Holds>
  bool until(const Holds& holds) {
    return comes_true([&] {
      a.progress();
      b.progress();
      return holds();
    });
  }
  SocketHub a, b;
};

TEST(SocketHub, WhatIsGivenUpHalfWayDoesNotSpoilTheStream) {
  Hubs hubs;
  std::vector<char> target(kLong);
  const auto unfinished = hubs.b.post_recv(target.data(), kLong, 0, {0, 0, 1});
  {
    std::vector<char> data(kLong, 'o');
    const auto given_up = hubs.a.post_send(data.data(), kLong, 1, {0, 0, 1});
    ASSERT_TRUE(hubs.until([&] { return given_up->moved() > 0; }));
    EXPECT_FALSE(given_up->test());
  }  // its buffer is gone
  const char value = 'v';
  char got = 0;
  const auto sending = hubs.a.post_send(&value, 1, 1, {0, 1, 1});
  const auto receiving = hubs.b.post_recv(&got, 1, 0, {0, 1, 1});
  EXPECT_TRUE(hubs.until([&] { return receiving->test(); }));
  EXPECT_EQ(got, 'v');
  EXPECT_TRUE(sending->test());
  EXPECT_FALSE(unfinished->test());
}

TEST(SocketHub, AReceiveThatIsGivenUpIsWrittenNoMore) {
  Hubs hubs;
  const std::vector<char> data(kLong, 'o');
  std::vector<char> target(kLong, 'x');
  const auto sending = hubs.a.post_send(data.data(), kLong, 1, {0, 0, 1});
  {
    const auto given_up = hubs.b.post_recv(target.data(), kLong, 0, {0, 0, 1});
    ASSERT_TRUE(hubs.until([&] { return given_up->moved() > 0; }));
    EXPECT_FALSE(given_up->test());
  }
  std::fill(target.begin(), target.end(), 'x');
  EXPECT_TRUE(hubs.until([&] { return sending->test(); }));  // what was granted goes on
  char got = 0;
  const auto answer = hubs.a.post_send("v", 1, 1, {0, 1, 1});
  const auto receiving = hubs.b.post_recv(&got, 1, 0, {0, 1, 1});
  EXPECT_TRUE(hubs.until([&] { return receiving->test(); }));
  EXPECT_EQ(std::count(target.begin(), target.end(), 'x'), kLong);
}

TEST(SocketHub, ANoticeOvertakesALongMessage) {
  Hubs hubs;
  const std::vector<char> data(kLong, 'o');
  std::vector<char> target(kLong);
  const auto receiving = hubs.b.post_recv(target.data(), kLong, 0, {0, 0, 1});
  const auto sending = hubs.a.post_send(data.data(), kLong, 1, {0, 0, 1});
  ASSERT_TRUE(hubs.until([&] { return receiving->moved() > 0; }));
  hubs.a.send_control(1, 7, {0, ControlKind::kAbort, 3, 1, "it rains"});
  std::optional<Control> control;
  ASSERT_TRUE(hubs.until([&] { return (control = hubs.b.poll_control(7)).has_value(); }));
  EXPECT_LT(receiving->moved(), kLong);
  EXPECT_EQ(control->text, "it rains");
  EXPECT_EQ(control->epoch, 3);
  EXPECT_EQ(control->blamed, 1);
  EXPECT_TRUE(hubs.until([&] { return receiving->test() && sending->test(); }));
  EXPECT_EQ(target, data);
}

/// However much is sent that nobody asks for, so much is kept and the rest waits at its sender.
TEST(SocketHub, UnexpectedMessagesAreBoundedAndNoneIsLost) {
  Hubs hubs;
  constexpr int kMessages = 300;
  constexpr int64_t kBytes = 200'000;
  std::vector<std::vector<char>> out;
  std::vector<std::unique_ptr<Delivery>> sending;
  for (int i = 0; i < kMessages; ++i) {
    out.emplace_back(kBytes, static_cast<char>(i));
    sending.push_back(hubs.a.post_send(out.back().data(), kBytes, 1, {0, 0, i}));
  }
  const auto done = [&] {
    return std::count_if(sending.begin(), sending.end(), [](auto& each) { return each->test(); });
  };
  ASSERT_TRUE(hubs.until([&] { return done() >= kEagerWindow / (kBytes + kEagerExtra); }));
  for (int i = 0; i < 100; ++i) {
    hubs.a.progress();
    hubs.b.progress();
  }
  EXPECT_EQ(done(), kEagerWindow / (kBytes + kEagerExtra));
  for (int i = kMessages - 1; i >= 0; --i) {  // the last first
    std::vector<char> in(kBytes);
    const auto receiving = hubs.b.post_recv(in.data(), kBytes, 0, {0, 0, i});
    ASSERT_TRUE(hubs.until([&] { return receiving->test(); })) << i;
    ASSERT_EQ(in, out[static_cast<size_t>(i)]);
  }
  EXPECT_EQ(done(), kMessages);
  // And what was asked for makes room for more.
  const auto more = hubs.a.post_send(out[0].data(), kBytes, 1, {0, 0, 1});
  EXPECT_TRUE(hubs.until([&] { return more->test(); }));
}

/// Several messages of one key keep their order though some are long.
TEST(SocketHub, LongAndShortMessagesOfOneKeyKeepTheirOrder) {
  Hubs hubs;
  const int64_t sizes[] = {3, 2'500'000, 0, 400'000, 1, kEagerBytes, kEagerBytes + 1};
  std::vector<std::vector<char>> out;
  std::vector<std::unique_ptr<Delivery>> sending;
  for (const int64_t size : sizes) {
    out.emplace_back(static_cast<size_t>(size), static_cast<char>('a' + out.size()));
    sending.push_back(hubs.a.post_send(out.back().data(), size, 1, {4, 0, 2}));
  }
  for (const std::vector<char>& expected : out) {
    std::vector<char> in(expected.size());
    const auto receiving =
        hubs.b.post_recv(in.data(), static_cast<int64_t>(in.size()), 0, {4, 0, 2});
    ASSERT_TRUE(hubs.until([&] { return receiving->test(); })) << expected.size();
    EXPECT_EQ(in, expected);
  }
}

/// What docs/security.md says is not protected.
TEST(SocketHub, FramesAreSentAsTheyAre) {
  rank_test::LinkPair pair = rank_test::connected_pair();
  SocketHub hub(0, Hubs::links(1, std::move(pair.b)), {"here", "here"});
  const std::string text = "to be read by whoever is on the way";
  const auto bytes = static_cast<int64_t>(text.size());
  const auto sending = hub.post_send(text.data(), bytes, 1, {0, 0, 1});
  std::string seen(sizeof(FrameHeader) + text.size(), '\0');
  pair.a.read_all(seen.data(), static_cast<int64_t>(seen.size()), steady_seconds() + 20.0);
  EXPECT_EQ(seen.substr(sizeof(FrameHeader)), text);
}

/// Bytes that are no frames, or frames that no rank sends, end the connection and nothing else.
TEST(SocketHub, WhatNoRankSendsEndsTheConnection) {
  const auto header = [](FrameKind kind, int64_t bytes, int32_t tag = 0) {
    return FrameHeader{kFrameMark, kind, bytes, 0, 0, 1, tag, -1};
  };
  FrameHeader without_mark = header(FrameKind::kEager, 8);
  without_mark.mark = 0;
  struct Case {
    FrameHeader header;
    const char* why;
  };
  const Case cases[] = {
      {without_mark, "no frame"},
      {header(static_cast<FrameKind>(-1), 8), "unknown kind"},
      {header(static_cast<FrameKind>(77), 8), "unknown kind"},
      {header(FrameKind::kEager, int64_t{1} << 62), "262144 are allowed"},
      {header(FrameKind::kEager, -1), "262144 are allowed"},
      {header(FrameKind::kEager, kEagerBytes + 1), "262144 are allowed"},
      {header(FrameKind::kPiece, int64_t{1} << 40), "1048576 are allowed"},
      {header(FrameKind::kNotice, 2001), "2000 are allowed"},
      {header(FrameKind::kGrant, 1), "0 are allowed"},
      {header(FrameKind::kOffer, -5), "are allowed"},
      {header(FrameKind::kCredit, 1000), "1000 bytes were asked for"},
      {header(FrameKind::kEager, 8, -1), "tag -1"},
      {header(FrameKind::kEager, 8, kTagLimit), "tag 131072"},
  };
  for (const Case& each : cases) {
    rank_test::LinkPair pair = rank_test::connected_pair();
    SocketHub hub(1, Hubs::links(0, std::move(pair.b)), {"here", "here"});
    pair.a.write_all(&each.header, sizeof(each.header), steady_seconds() + 5.0);
    char byte = 0;
    const auto receiving = hub.post_recv(&byte, 1, 0, {9, 9, 9});
    std::string why;
    EXPECT_TRUE(comes_true([&] {
      try {
        receiving->test();
      } catch (const CommunicationError& error) {
        EXPECT_EQ(error.rank(), 0);
        why = error.what();
      }
      return !why.empty();
    }));
    EXPECT_THAT(why, HasSubstr(each.why));
  }
}

/// A rank that keeps sending what nobody reads, past what it may.
TEST(SocketHub, AFloodEndsTheConnection) {
  struct Case {
    FrameHeader header;
    const char* why;
  };
  const Case cases[] = {
      {{kFrameMark, FrameKind::kEager, kEagerBytes, 0, 0, 0, 1, -1}, "has not asked for"},
      {{kFrameMark, FrameKind::kEager, 0, 0, 0, 0, 1, -1}, "has not asked for"},
      {{kFrameMark, FrameKind::kOffer, 1 << 30, 0, 0, 5, 1, -1}, "are offered"},
      {{kFrameMark, FrameKind::kNotice, 0, 0, 0, 0, 1, -1}, "nobody reads"},
  };
  for (const Case& each : cases) {
    rank_test::LinkPair pair = rank_test::connected_pair();
    SocketHub hub(1, Hubs::links(0, std::move(pair.b)), {"here", "here"});
    std::string frame(sizeof(FrameHeader) + static_cast<size_t>(payload_of(each.header)), 'x');
    std::memcpy(frame.data(), &each.header, sizeof(FrameHeader));
    char byte = 0;
    const auto receiving = hub.post_recv(&byte, 1, 0, {9, 9, 9});
    std::string why;
    EXPECT_TRUE(comes_true([&] {
      size_t sent = 0;
      try {
        while (why.empty()) {
          const int64_t moved =
              pair.a.write_some(frame.data() + sent, static_cast<int64_t>(frame.size() - sent));
          sent = (sent + static_cast<size_t>(moved)) % frame.size();
          if (moved == 0) receiving->test();
        }
      } catch (const CommunicationError& error) {
        why = error.what();
      }
      return true;
    }));
    EXPECT_THAT(why, HasSubstr(each.why));
  }
}

/// Threads that each drive a communicator of their own over the same connections.
TEST(SocketHub, ManyThreadsAtOnce) {
  Hubs hubs;
  constexpr int kThreads = 3, kRounds = 400;
  std::atomic<int> wrong = 0;
  const auto wait = [](SocketHub& hub, Delivery& request) {
    for (;;) {
      const uint64_t seen = hub.moves();
      if (request.test()) return;
      hub.sleep(0.002, seen);
    }
  };
  const auto play = [&](SocketHub& hub, int other, uint64_t context) {
    uint32_t state = static_cast<uint32_t>(context);
    for (int round = 0; round < kRounds; ++round) {
      state = state * 1664525u + 1013904223u;
      const int64_t bytes = state % 16 == 0 ? state % 2'000'000 : state % 5000;
      const MessageKey key{context, 0, round % 5};
      const std::vector<char> out(static_cast<size_t>(bytes), static_cast<char>(state >> 20));
      std::vector<char> in(out.size());
      const auto receiving = hub.post_recv(in.data(), bytes, other, key);
      const auto sending = hub.post_send(out.data(), bytes, other, key);
      if (round % 50 == 0) hub.send_control(other, context, {0, ControlKind::kPing, round, -1, ""});
      wait(hub, *receiving);
      wait(hub, *sending);
      if (in != out) ++wrong;
    }
    int controls = 0;
    comes_true([&] {
      if (hub.poll_control(context)) ++controls;
      return controls == kRounds / 50;
    });
    if (controls != kRounds / 50) ++wrong;
  };
  std::vector<std::thread> threads;
  for (uint64_t context = 1; context <= kThreads; ++context) {
    threads.emplace_back([&, context] { play(hubs.a, 1, context); });
    threads.emplace_back([&, context] { play(hubs.b, 0, context); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace cuop::dist
