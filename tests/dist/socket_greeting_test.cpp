#include "cuop/dist/comm/socket_greeting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "cuop/core/sha256.h"

namespace cuop::dist {
namespace {

const std::string kJobSecret = "what only these ranks know";

struct Talk {
  Job job = make_job(kJobSecret, "host:1:4", 4);
  Door door{1, 5000};
  std::string challenge = make_challenge();
  std::string greeting = make_greeting(job, challenge, door, {3, 6000, "node7"});
  std::string welcome = make_welcome(job, challenge, door, greeting);

  bool is_let_in(const std::string& words) const {
    return check_greeting(job, challenge, door, words).has_value();
  }
};

TEST(SocketGreeting, SaysWhoGreets) {
  const Talk talk;
  EXPECT_EQ(talk.challenge.size(), kChallengeBytes);
  EXPECT_TRUE(is_challenge(talk.challenge));
  EXPECT_FALSE(is_challenge("SSH-2.0-OpenSSH_9.2p1 and some more words"));
  const auto who = check_greeting(talk.job, talk.challenge, talk.door, talk.greeting);
  ASSERT_TRUE(who.has_value());
  EXPECT_EQ(who->rank, 3);
  EXPECT_EQ(who->port, 6000);
  EXPECT_EQ(who->host, "node7");
  EXPECT_TRUE(check_welcome(talk.job, talk.challenge, talk.door, talk.greeting, talk.welcome));
  const std::string long_name(300, 'n');
  const std::string words = make_greeting(talk.job, talk.challenge, talk.door, {0, 1, long_name});
  EXPECT_EQ(words.size(), kGreetingBytes);
  EXPECT_EQ(check_greeting(talk.job, talk.challenge, talk.door, words)->host,
            long_name.substr(0, kHostBytes - 1));
}

TEST(SocketGreeting, HoldsForOneConnectionOfOneJobAlone) {
  const Talk talk;
  const auto lets_in = [&](const Job& job, const std::string& challenge, const Door& door) {
    return check_greeting(job, challenge, door, talk.greeting).has_value();
  };
  EXPECT_TRUE(lets_in(talk.job, talk.challenge, talk.door));
  // Another secret, another job of the same user, a replay, another port, another rank.
  EXPECT_FALSE(lets_in(make_job(kJobSecret + "x", "host:1:4", 4), talk.challenge, talk.door));
  EXPECT_FALSE(lets_in(make_job(kJobSecret, "host:2:4", 4), talk.challenge, talk.door));
  EXPECT_FALSE(lets_in(talk.job, make_challenge(), talk.door));
  EXPECT_FALSE(lets_in(talk.job, talk.challenge, {1, 5001}));
  EXPECT_FALSE(lets_in(talk.job, talk.challenge, {2, 5000}));
  const auto welcomes = [&](const Job& job, const std::string& challenge, const Door& door,
                            const std::string& greeting) {
    return check_welcome(job, challenge, door, greeting, talk.welcome);
  };
  EXPECT_FALSE(
      welcomes(make_job("guessed", "host:1:4", 4), talk.challenge, talk.door, talk.greeting));
  EXPECT_FALSE(welcomes(talk.job, make_challenge(), talk.door, talk.greeting));
  EXPECT_FALSE(welcomes(talk.job, talk.challenge, {1, 5001}, talk.greeting));
  const std::string again = make_greeting(talk.job, talk.challenge, talk.door, {3, 6000, "node7"});
  EXPECT_NE(again, talk.greeting);
  EXPECT_FALSE(welcomes(talk.job, talk.challenge, talk.door, again));
}

/// A proof that is sent back to where it came from proves nothing.
TEST(SocketGreeting, CannotBeReflected) {
  const Talk talk;
  const std::string proof = talk.greeting.substr(kGreetingBytes - kWelcomeBytes);
  EXPECT_FALSE(check_welcome(talk.job, talk.challenge, talk.door, talk.greeting, proof));
  std::string mirrored = talk.greeting;
  std::copy(talk.welcome.begin(), talk.welcome.end(), mirrored.end() - 32);
  EXPECT_FALSE(talk.is_let_in(mirrored));
}

TEST(SocketGreeting, EveryBitIsProven) {
  const Talk talk;
  for (size_t bit = 0; bit < kGreetingBytes * 8; ++bit) {
    std::string words = talk.greeting;
    words[bit / 8] = static_cast<char>(words[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(talk.is_let_in(words)) << bit;
  }
  for (size_t length = 0; length < kGreetingBytes; ++length) {
    EXPECT_FALSE(talk.is_let_in(talk.greeting.substr(0, length)));
  }
  EXPECT_FALSE(talk.is_let_in(talk.greeting + "x"));
}

/// Also who knows the secret cannot name a rank that does not exist.
TEST(SocketGreeting, ChecksWhatItSays) {
  const Talk talk;
  const auto is_believed = [&](const Introduction& self, int wanted = 1) {
    return talk.is_let_in(make_greeting(talk.job, talk.challenge, {wanted, 5000}, self));
  };
  EXPECT_TRUE(is_believed({0, 0, ""}));
  EXPECT_FALSE(is_believed({4, 6000, ""}));
  EXPECT_FALSE(is_believed({-1, 6000, ""}));
  EXPECT_FALSE(is_believed({3, 65536, ""}));
  EXPECT_FALSE(is_believed({3, -1, ""}));
  EXPECT_FALSE(is_believed({3, 6000, ""}, 2));
}

}  // namespace
}  // namespace cuop::dist
