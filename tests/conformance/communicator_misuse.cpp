// Calls that nobody should make: from two threads at once, without buffers, while others meet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <thread>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "tests/conformance/communicator_suite.h"
#include "tests/conformance/deadlines.h"
#include "tests/error_of.h"

namespace cuop::dist::conformance {

namespace {

using test::caught;
using test::error_of;
using testing::HasSubstr;

/// A second thread of rank 0 ends the wait of the first, and of all: none takes the other's place.
void a_second_thread_is_refused(Rank comm) {
  if (comm->size() == 1) return;
  const Timeout timeout(comm, kLong);
  all_report_to_rank_0(comm);
  if (comm->rank() != 0) {
    const auto error = caught<CommunicationError>([&] {
      comm->recv(nullptr, 0, 0, 1);
      comm->barrier();
    });
    EXPECT_EQ(error.rank(), 0) << error.what();
    EXPECT_THAT(error.what(), HasSubstr("another thread of rank 0"));
  } else {
    char byte = 0;
    std::string first;
    std::thread waiting([&] { first = error_of([&] { comm->recv(&byte, 1, 1, 2); }); });
    const auto waits = [&] { return comm->health()[0].operation == "recv"; };
    for (double waited = 0; !waits() && waited < kLong / 2; waited += 0.001) pause(0.001);
    const std::string second = error_of<ExecutionError>([&] { comm->barrier(); });
    waiting.join();
    EXPECT_THAT(second, HasSubstr("barrier: another thread of rank 0"));
    EXPECT_THAT(second, HasSubstr("split"));
    EXPECT_THAT(first, HasSubstr("another thread of rank 0"));
  }
  recover_and_check(comm);
}

/// One after the other they may, and each a part of its own.
void threads_take_turns(Rank comm) {
  const auto part = comm->split(0, comm->rank());
  int64_t sum = 0;
  std::thread([&] { comm->barrier(); }).join();
  std::thread beside([&] {
    for (int i = 0; i < 20; ++i) part->barrier();
  });
  for (int i = 0; i < 20; ++i) {
    const int64_t one = 1;
    comm->all_reduce(&one, &sum, 1, DType::kInt64, ReduceKind::kSum);
  }
  beside.join();
  EXPECT_EQ(sum, comm->size());
}

/// Rank 0 waits for ranks that meet without it: it is told by the call they are in, at once.
void waits_for_those_who_meet(Rank comm, const std::function<void()>& meet, const char* name) {
  if (comm->size() == 1) return;
  const auto part = comm->split(0, comm->rank());
  for (const Rank waiting : {comm, part}) {
    for (const bool is_message : {false, true}) {
      const Timeout timeout(comm, kLong);
      waiting->set_timeout(kLong);
      all_report_to_rank_0(comm);
      if (comm->rank() == 0) {
        char byte = 0;
        const auto error = caught<CommunicationError>([&] {
          if (is_message) waiting->recv(&byte, 1, 1, 3);
          waiting->barrier();
        });
        EXPECT_THAT(error.what(), HasSubstr(cat(", which has called ", name)));
        EXPECT_GT(error.rank(), 0);
      }
      meet();
      comm->recover();  // of a shrink both communicators are there still, and the old one failed
    }
  }
  comm->barrier();
  part->barrier();
}

void a_recovery_ends_other_waits(Rank comm) {
  waits_for_those_who_meet(
      comm, [&] { comm->recover(); }, "recover");
}

void a_shrink_ends_other_waits(Rank comm) {
  waits_for_those_who_meet(
      comm, [&] { EXPECT_EQ(comm->shrink()->size(), comm->size()); }, "shrink");
}

/// Some recover while others shrink: all raise long before the deadline and say who called what.
/// Then they meet, however late some come. Whoever sees that the others have come to `recover`
/// before it sees that one of them had not, has recovered with them.
void some_recover_and_others_shrink(Rank comm) {
  if (comm->size() == 1) return;
  const auto part = comm->split(0, -comm->rank());
  for (const Rank meeting : {comm, part}) {
    const Timeout timeout(meeting, 3 * kLong);
    for (const bool is_rank_0_to_shrink : {true, false}) {
      const bool recovers = (comm->rank() == 0) != is_rank_0_to_shrink;
      const auto start = std::chrono::steady_clock::now();
      bool has_recovered = false;
      try {
        if (recovers) {
          meeting->recover();
        } else {
          meeting->shrink();
        }
        has_recovered = true;
        EXPECT_TRUE(recovers);
      } catch (const CommunicationError& error) {
        EXPECT_THAT(error.what(), HasSubstr(recovers ? "recover: rank " : "shrink: rank "));
        EXPECT_THAT(error.what(), HasSubstr(recovers ? ", which has called shrink"
                                                     : ", which has called recover"));
        EXPECT_GE(error.rank(), 0);
        EXPECT_NE(error.rank(), comm->rank());
      }
      for (int tries = 0; !has_recovered && tries < 100; ++tries) {
        try {
          meeting->recover();
          has_recovered = true;
        } catch (const CommunicationError& error) {
          EXPECT_THAT(error.what(), HasSubstr(", which has called shrink"));
        }
      }
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
      meeting->barrier();
    }
  }
}

/// A recovery to which a rank does not come is in vain for one rank first. That shrinks, and waits
/// for the others, which raise and follow it.
void who_recovers_in_vain_may_shrink(Rank comm) {
  if (comm->size() < 3) return;
  const Timeout timeout(comm, kLong);
  const auto part = comm->split(0, comm->rank());
  const int late = comm->size() - 1;
  char byte = 0;
  if (comm->rank() == late) comm->recv(&byte, 1, 0, 98);
  part->set_timeout(comm->rank() == 0 ? kShort : kLong);
  EXPECT_NE(error_of([&] { part->recover(); }), "");
  if (comm->rank() == 0) comm->send(&byte, 1, late, 98);
  part->set_timeout(kLong);
  const auto left = part->shrink();
  EXPECT_EQ(left->size(), comm->size());
  left->barrier();
  part->recover();
  comm->barrier();
}

/// Who has bytes to send or to receive gives a buffer; others need none.
void missing_buffers_are_refused(Rank comm) {
  const Timeout timeout(comm, kLong);
  const int ranks = comm->size();
  const auto count = static_cast<size_t>(ranks);
  std::vector<Block> blocks;
  for (int rank = 0; rank < ranks; ++rank) blocks.push_back({rank * 8, 8});
  std::vector<int64_t> counts(count, 1), data(count, 7);
  const auto sum = ReduceKind::kSum;
  const auto type = DType::kInt64;
  int64_t* const at = data.data();
  const auto refused = [&](const char* what, const std::function<void()>& call) {
    EXPECT_THAT(error_of<ExecutionError>(call), HasSubstr(what));
    EXPECT_EQ(comm->failure(), "") << what;  // all refuse it: nothing has happened
  };
  refused("broadcast: no buffer", [&] { comm->broadcast(nullptr, 8, 0); });
  refused("all_gather: no buffer to send", [&] { comm->all_gather(nullptr, blocks, at); });
  refused("all_gather: no buffer to receive", [&] { comm->all_gather(at, blocks, nullptr); });
  refused("all_to_all: no buffer to send", [&] { comm->all_to_all(nullptr, blocks, at, blocks); });
  refused("all_to_all: no buffer to rec", [&] { comm->all_to_all(at, blocks, nullptr, blocks); });
  refused("gather: no buffer to send", [&] { comm->gather(nullptr, blocks, at, 0); });
  refused("scatter: no buffer to rec", [&] { comm->scatter(at, blocks, nullptr, 0); });
  refused("reduce: no buffer to send", [&] { comm->reduce(nullptr, at, 1, type, sum, 0); });
  refused("all_reduce: no buffer to rec", [&] { comm->all_reduce(at, nullptr, 1, type, sum); });
  refused("all_reduce: no buffer to send", [&] { comm->all_reduce(nullptr, at, 1, type, sum); });
  refused("reduce_scatter: no buffer to send",
          [&] { comm->reduce_scatter(nullptr, at, counts, type, sum); });
  refused("reduce_scatter: no buffer to rec",
          [&] { comm->reduce_scatter(at, nullptr, counts, type, sum); });
  EXPECT_THAT(error_of<ExecutionError>([&] { comm->send(nullptr, 4, 0, 0); }),
              HasSubstr("message of 4 bytes"));
  EXPECT_THAT(error_of<ExecutionError>([&] { comm->recv(nullptr, 4, 0, 0); }),
              HasSubstr("message of 4 bytes"));

  const bool is_root = comm->rank() == 0;
  comm->reduce(at, is_root ? at : nullptr, 1, type, sum, 0);
  comm->gather(at, blocks, is_root ? at : nullptr, 0);
  comm->scatter(is_root ? at : nullptr, blocks, at, 0);
  const std::vector<Block> nothing(count);
  comm->all_to_all(nullptr, nothing, nullptr, nothing);
  comm->all_reduce(nullptr, nullptr, 0, type, sum);
}

void counts_beyond_memory_are_refused(Rank comm) {
  const Timeout timeout(comm, kLong);
  const auto count = static_cast<size_t>(comm->size());
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  double value = 0;
  const auto refused = [&](const std::function<void()>& call) {
    EXPECT_THAT(error_of<ExecutionError>(call), HasSubstr("the length is"));
  };
  refused([&] { comm->all_reduce(&value, &value, kMost / 2, DType::kFloat64, ReduceKind::kSum); });
  refused([&] { comm->all_gather(&value, std::vector<Block>(count, {kMost, 8}), &value); });
  std::vector<int64_t> counts(count, kMost / 20);
  counts[0] = kMost;
  refused([&] { comm->reduce_scatter(&value, &value, counts, DType::kFloat64, ReduceKind::kSum); });
  comm->barrier();
}

void time_outs_are_numbers_from_0_on(Rank comm) {
  const double before = comm->timeout();
  for (const double wrong : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(error_of<ExecutionError>([&] { comm->set_timeout(wrong); }),
                HasSubstr("timeout: "));
  }
  EXPECT_EQ(comm->timeout(), before);
  const Timeout endless(comm, std::numeric_limits<double>::infinity());
  comm->barrier();
}

}  // namespace

std::vector<Case> misuse_cases() {
  return {{"a_second_thread_is_refused", a_second_thread_is_refused},
          {"threads_take_turns", threads_take_turns},
          {"a_recovery_ends_other_waits", a_recovery_ends_other_waits},
          {"a_shrink_ends_other_waits", a_shrink_ends_other_waits},
          {"some_recover_and_others_shrink", some_recover_and_others_shrink},
          {"who_recovers_in_vain_may_shrink", who_recovers_in_vain_may_shrink},
          {"missing_buffers_are_refused", missing_buffers_are_refused},
          {"counts_beyond_memory_are_refused", counts_beyond_memory_are_refused},
          {"time_outs_are_numbers_from_0_on", time_outs_are_numbers_from_0_on}};
}

}  // namespace cuop::dist::conformance
