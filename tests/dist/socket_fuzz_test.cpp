// Bytes of strangers and broken peers against the parsers of the TCP communicator. How many inputs:
// CUOP_FUZZ_INPUTS, a few thousand when it is not set.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

#include "cuop/core/error.h"
#include "cuop/dist/comm/socket_greeting.h"
#include "cuop/dist/comm/socket_hub.h"

namespace cuop::dist {
namespace {

int input_count() {
  const char* text = std::getenv("CUOP_FUZZ_INPUTS");
  return text != nullptr ? std::atoi(text) : 5000;
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  uint64_t below(uint64_t limit) { return engine_() % limit; }
  char byte() { return static_cast<char>(engine_()); }
  /// Numbers that parsers stumble over.
  int64_t number() {
    constexpr int64_t kHard[] = {0,     1,         -1,        255,       256,       65535,
                                 65536, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 1 << 20,
                                 2000,  2001,      262144,    262145,    1048577,   131072};
    return below(3) == 0 ? static_cast<int64_t>(engine_()) : kHard[below(std::size(kHard))];
  }

 private:
  std::mt19937_64 engine_;
};

/// Random, cut, prolonged, with some bytes changed, or as it was.
std::string mutated(std::string text, Dice& dice) {
  switch (dice.below(6)) {
    case 0:
      for (char& byte : text) byte = dice.byte();
      return text;
    case 1:
      return text.substr(0, dice.below(text.size() + 1));
    case 2:
      return text + std::string(dice.below(100), dice.byte());
    case 3:
    case 4:
      for (uint64_t i = dice.below(4) + 1; i > 0 && !text.empty(); --i) {
        text[dice.below(text.size())] = dice.byte();
      }
      return text;
    default:
      return text;
  }
}

struct Ends {
  Socket outside, inside;
};
Ends ends() {
  int two[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, two) != 0) {
    throw CommunicationError("no pair of sockets");
  }
  return {Socket(two[0]), Socket(two[1])};
}

/// Whatever is said, only a true greeting is believed, word for word.
TEST(SocketFuzz, Greetings) {
  Dice dice(1);
  const Job job = make_job("a secret of the fuzzer", "here:1:5", 5);
  const Door door{2, 4000};
  const std::string challenge = make_challenge();
  int believed = 0, untouched = 0;
  for (int i = 0; i < input_count(); ++i) {
    const Introduction self{static_cast<int>(dice.number()), static_cast<int>(dice.number()),
                            std::string(dice.below(100), dice.byte())};
    const std::string words = make_greeting(job, challenge, door, self);
    const std::string changed = mutated(words, dice);
    const auto who = check_greeting(job, challenge, door, changed);
    const bool is_valid =
        self.rank >= 0 && self.rank < 5 && self.port >= 0 && self.port <= 65535 && changed == words;
    ASSERT_EQ(who.has_value(), is_valid);
    ASSERT_FALSE(check_welcome(job, challenge, door, words, mutated(words, dice)));
    is_challenge(changed);
    believed += who ? 1 : 0;
    untouched += changed == words ? 1 : 0;
  }
  EXPECT_GT(believed, 0);
  EXPECT_GT(untouched, believed);
}

/// Of a short message: seldom one of its own, so that what is awaited and what comes fit at times.
int64_t length(Dice& dice) {
  constexpr int64_t kUsual[] = {0, 8, 100, 2000};
  return dice.below(4) == 0 ? static_cast<int64_t>(dice.below(3000)) : kUsual[dice.below(4)];
}

FrameHeader random_header(Dice& dice) {
  FrameHeader header{kFrameMark,
                     static_cast<FrameKind>(dice.below(6)),
                     length(dice),
                     dice.below(3),
                     static_cast<int64_t>(dice.below(3)),
                     dice.below(4),
                     static_cast<int32_t>(dice.below(4)),
                     static_cast<int32_t>(dice.below(4)) - 1};
  switch (dice.below(12)) {
    case 0:
      header.bytes = dice.number();
      break;
    case 1:
      header.tag = static_cast<int32_t>(dice.number());
      break;
    case 2:
      header.kind = static_cast<FrameKind>(dice.number());
      break;
    case 3:
      header.id = static_cast<uint64_t>(dice.number());
      break;
    case 4:
      header.blamed = static_cast<int32_t>(dice.number());
      break;
    case 5:
      header.epoch = dice.number();
      break;
    default:
      break;
  }
  return header;
}

/// Some frames one after the other, each with the payload that it announces, within reason.
std::string random_stream(Dice& dice) {
  std::string stream;
  for (uint64_t frames = dice.below(6) + 1; frames > 0; --frames) {
    const FrameHeader header = random_header(dice);
    stream.append(reinterpret_cast<const char*>(&header), sizeof(header));
    const int64_t payload = payload_of(header);
    if (payload > 0 && payload < 5000) stream.append(static_cast<size_t>(payload), dice.byte());
  }
  return stream;
}

/// A hub that waits for messages and has offered some takes any stream: each of its requests goes
/// on waiting, completes, or raises, and no byte beside its buffer is touched.
TEST(SocketFuzz, Frames) {
  Dice dice(2);
  int lost = 0, completed = 0;
  std::vector<char> offered(kEagerBytes + 1, 'o');
  for (int i = 0; i < input_count(); ++i) {
    Ends pair = ends();
    std::vector<Socket> links(2);
    links[1] = std::move(pair.inside);
    SocketHub hub(0, std::move(links), {"here", "here"});
    const std::string stream = mutated(random_stream(dice), dice);
    std::vector<std::unique_ptr<Delivery>> requests;
    std::vector<std::vector<char>> buffers;
    for (int posted = 0; posted < 3; ++posted) {
      const int64_t bytes = length(dice);
      buffers.emplace_back(static_cast<size_t>(bytes) + 1, 'x');
      const MessageKey key{dice.below(3), static_cast<int64_t>(dice.below(3)),
                           static_cast<int32_t>(dice.below(4))};
      requests.push_back(hub.post_recv(buffers.back().data(), bytes, 1, key));
    }
    requests.push_back(hub.post_send(offered.data(), kEagerBytes + 1, 1, {0, 0, 1}));
    if (!stream.empty())
      pair.outside.write_some(stream.data(), static_cast<int64_t>(stream.size()));
    for (int turn = 0; turn < 3; ++turn) {
      for (auto& request : requests) {
        try {
          completed += request && request->test() ? 1 : 0;
        } catch (const CommunicationError& error) {
          lost += error.rank() == 1 ? 1 : 0;
        }
      }
      while (hub.poll_control(dice.below(3))) {
      }
      requests[dice.below(requests.size())].reset();
    }
    for (const std::vector<char>& buffer : buffers) ASSERT_EQ(buffer.back(), 'x');
  }
  EXPECT_GT(lost, 0);
  EXPECT_GT(completed, 0);
}

}  // namespace
}  // namespace cuop::dist
