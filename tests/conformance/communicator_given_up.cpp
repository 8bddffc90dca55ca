// Messages that a failure leaves under way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cuop/core/text.h"
#include "tests/conformance/communicator_suite.h"
#include "tests/conformance/deadlines.h"
#include "tests/error_of.h"

namespace cuop::dist::conformance {

namespace {

using test::error_of;
using testing::HasSubstr;

/// What was under way when a failure struck must not be taken for what comes after.
void stale_messages_are_dropped(Rank comm) {
  if (comm->size() == 1) return;
  for (int round = 0; round < 3; ++round) {
    const std::vector<char> stale(40, 's');
    if (comm->rank() == 0) comm->send(stale.data(), 40, 1, 6);
    if (comm->rank() == 0) comm->abort("round");
    EXPECT_NE(error_of([&] {
                for (;;) comm->barrier();
              }),
              "");
    comm->recover();
    char value = static_cast<char>('a' + round);
    if (comm->rank() == 0) comm->send(&value, 1, 1, 6);
    if (comm->rank() == 1) {
      char got = 0;
      comm->recv(&got, 1, 0, 6);
      EXPECT_EQ(got, value);
    }
    all_report_to_rank_0(comm);
  }
}

/// The same of long ones, which are announced and wait at their sender until somebody asks for
/// them.
void stale_long_messages_are_dropped(Rank comm) {
  if (comm->size() == 1) return;
  const Timeout timeout(comm, kLong);
  constexpr int64_t kBytes = 300'000;
  for (int round = 0; round < 3; ++round) {
    std::vector<char> data(kBytes, 's');
    all_report_to(comm, 1);
    EXPECT_NE(error_of([&] {
                if (comm->rank() == 1) pause(0.01 * round);
                if (comm->rank() == 1) comm->abort("round");
                if (comm->rank() == 0) comm->send(data.data(), kBytes, 1, 6);
                for (;;) comm->barrier();
              }),
              "");
    comm->recover();
    const char value = static_cast<char>('a' + round);
    std::fill(data.begin(), data.end(), comm->rank() == 0 ? value : ' ');
    if (comm->rank() == 0) comm->send(data.data(), kBytes, 1, 6);
    if (comm->rank() == 1) {
      comm->recv(data.data(), kBytes, 0, 6);
      EXPECT_EQ(std::count(data.begin(), data.end(), value), kBytes);
    }
    all_report_to_rank_0(comm);
  }
}

/// Messages that fit into one packet each, to a rank that takes them when they were given up: it is
/// told what was sent, not what lies there since.
void given_up_packets_are_whole(Rank comm) {
  if (comm->size() == 1) return;
  const int absent = comm->size() - 1;
  constexpr int64_t kBytes = 30'000;
  std::vector<char> data(kBytes, 's');
  {
    const Timeout timeout(comm, kShort);
    if (comm->rank() == absent) come_too_late(comm);
    const std::string error = error_of([&] {
      for (int i = 0; i < 20 && comm->rank() != absent; ++i) {
        comm->send(data.data(), i < 10 ? 40 : kBytes, absent, 5);
      }
      comm->barrier();
    });
    EXPECT_THAT(error, HasSubstr("waited 0.3 s"));
  }
  recover_and_check(comm);
  std::fill(data.begin(), data.end(), comm->rank() == absent ? ' ' : 'n');
  if (comm->rank() == 0) comm->send(data.data(), kBytes, absent, 5);
  if (comm->rank() == absent) {
    comm->recv(data.data(), kBytes, 0, 5);
    EXPECT_EQ(std::count(data.begin(), data.end(), 'n'), kBytes);
  }
}

void wrong_length_is_refused(Rank comm) {
  if (comm->size() == 1) return;
  const Timeout timeout(comm, kLong);
  // {sent, asked for}: shorter, longer, and around whole multiples of small chunks
  const int64_t lengths[][2] = {{10, 12}, {12, 10}, {64, 128}, {128, 64}, {0, 3}, {90'000, 3}};
  for (const auto& [sent, asked] : lengths) {
    std::vector<char> buffer(100'000, 'x');
    const std::string error = error_of([&, s = sent, a = asked] {
      if (comm->rank() == 0) comm->send(buffer.data(), s, 1, 2);
      if (comm->rank() == 1) comm->recv(buffer.data(), a, 0, 2);
      for (;;) comm->barrier();
    });
    EXPECT_THAT(error, HasSubstr("bytes"));
    EXPECT_THAT(error, HasSubstr(cat(asked)));
    EXPECT_EQ(buffer[static_cast<size_t>(asked)], 'x');  // never written past its end
    comm->recover();
  }
}

/// After a failure in the middle of a long message neither side's buffer is touched any more.
void given_up_buffers_are_left_alone(Rank comm) {
  constexpr int64_t kBytes = 8'000'000;
  if (comm->size() < 3) return;
  const Timeout timeout(comm, kLong);
  for (int round = 0; round < 3; ++round) {
    std::vector<char> buffer(kBytes, 's');
    all_report_to(comm, 2);
    const std::string error = error_of([&] {
      if (comm->rank() == 2) {
        pause(0.002 * round);
        comm->abort("in the middle");
      }
      for (;;) {
        if (comm->rank() == 0) comm->send(buffer.data(), kBytes, 1, 3);
        if (comm->rank() == 1) comm->recv(buffer.data(), kBytes, 0, 3);
        if (comm->rank() > 1) comm->barrier();
      }
    });
    EXPECT_THAT(error, HasSubstr("in the middle"));
    std::fill(buffer.begin(), buffer.end(), 'x');
    if (comm->rank() == 0) std::vector<char>().swap(buffer);  // the system takes the pages back
    comm->recover();
    std::vector<char> other(kBytes, static_cast<char>('a' + round));
    if (comm->rank() == 0) comm->send(other.data(), kBytes, 1, 3);
    if (comm->rank() == 1) {
      std::fill(other.begin(), other.end(), ' ');
      comm->recv(other.data(), kBytes, 0, 3);
      EXPECT_EQ(std::count(other.begin(), other.end(), static_cast<char>('a' + round)), kBytes);
      EXPECT_EQ(std::count(buffer.begin(), buffer.end(), 'x'), kBytes);
    }
    comm->barrier();
  }
}

}  // namespace

std::vector<Case> given_up_cases() {
  return {{"stale_messages_are_dropped", stale_messages_are_dropped},
          {"stale_long_messages_are_dropped", stale_long_messages_are_dropped},
          {"given_up_packets_are_whole", given_up_packets_are_whole},
          {"wrong_length_is_refused", wrong_length_is_refused},
          {"given_up_buffers_are_left_alone", given_up_buffers_are_left_alone}};
}

}  // namespace cuop::dist::conformance
