// What ranks know of each other, what errors say of the call, and how the rest goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "tests/conformance/communicator_suite.h"
#include "tests/conformance/deadlines.h"
#include "tests/error_of.h"

namespace cuop::dist::conformance {

namespace {

using test::caught;
using test::error_of;
using testing::AllOf;
using testing::HasSubstr;

int64_t sum_of_ones(Communicator& comm) {
  int64_t one = 1;
  comm.all_reduce(&one, &one, 1, DType::kInt64, ReduceKind::kSum);
  return one;
}

/// A rank that waits for one outside of calls is known to do so, and is not stuck.
void health_says_who_waits_for_whom(Rank comm) {
  const Timeout timeout(comm, kLong);
  EXPECT_EQ(comm->health().size(), static_cast<size_t>(comm->size()));
  for (const RankHealth& each : comm->health()) EXPECT_STREQ(each.name(), "alive");
  char byte = 0;
  if (comm->rank() > 0) comm->recv(&byte, 1, 0, 7);
  for (int rank = 1; comm->rank() == 0 && rank < comm->size(); ++rank) {
    RankHealth health;
    // For whom it waits is noted some moments after what it is in.
    for (double waited = 0; health.waits_for != 0 && waited < kLong; waited += 0.01) {
      pause(0.01);
      health = comm->health()[static_cast<size_t>(rank)];
    }
    EXPECT_EQ(health.operation, "recv");
    EXPECT_EQ(health.waits_for, 0);
    EXPECT_STREQ(health.name(), "alive");
    EXPECT_GT(health.number, 0);
  }
  EXPECT_EQ(comm->health()[static_cast<size_t>(comm->rank())].operation, "");
  for (int rank = 1; comm->rank() == 0 && rank < comm->size(); ++rank)
    comm->send(&byte, 1, rank, 7);
}

/// Ranks in different collective calls raise long before the deadline, and name both calls.
void different_calls_name_both(Rank comm) {
  if (comm->size() == 1) return;
  const Timeout timeout(comm, 3 * kLong);
  const auto start = std::chrono::steady_clock::now();
  const int odd = 0;  // which comes last out of the meeting before the case
  const auto error = caught<CommunicationError>([&] {
    if (comm->rank() == odd) comm->barrier();
    if (comm->rank() != odd) sum_of_ones(*comm);
    for (;;) comm->barrier();  // thread ranks may learn of it in the next call
  });
  EXPECT_THAT(error.what(), AllOf(HasSubstr("barrier"), HasSubstr("all_reduce")));
  EXPECT_EQ(error.call().operation, comm->rank() == odd ? "barrier" : "all_reduce");
  EXPECT_THAT(error.what(), HasSubstr(cat("both are call ", error.call().number)));
  EXPECT_GE(error.rank(), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  comm->recover();
  EXPECT_EQ(sum_of_ones(*comm), comm->size());
}

/// The number of a call is the same on all ranks; after a recovery it begins anew.
void errors_carry_the_call(Rank comm) {
  const Timeout timeout(comm, kLong);
  const auto part = comm->split(0, 0);
  part->barrier();
  all_report_to_rank_0(part);
  if (part->rank() == 0) part->abort("enough");
  const auto aborted = caught<CommunicationError>([&] {
    for (;;) sum_of_ones(*part);
  });
  EXPECT_EQ(aborted.call().operation, "all_reduce");
  EXPECT_GE(aborted.call().number, 1);
  EXPECT_EQ(aborted.rank(), 0);
  part->recover();
  if (part->rank() == 0) part->refuse_call("a wrong argument");
  if (part->rank() == 0) return part->recover();
  const auto refused = caught<CommunicationError>([&] {
    for (;;) part->barrier();
  });
  EXPECT_EQ(refused.call().operation, "barrier");
  EXPECT_THAT(refused.what(), HasSubstr("a wrong argument"));
  part->recover();
}

/// Without a failure all go on, in a communicator of its own.
void all_may_shrink(Rank comm) {
  const Timeout timeout(comm, kLong);
  const auto again = comm->shrink();
  EXPECT_EQ(again->size(), comm->size());
  EXPECT_EQ(again->rank(), comm->rank());
  EXPECT_EQ(again->kind(), comm->kind());
  EXPECT_EQ(sum_of_ones(*again), comm->size());
  const auto half = again->split(again->rank() % 2, 0);
  EXPECT_EQ(half->in_world(half->rank()), again->rank());
  all_report_to_rank_0(again);
  // It fails and recovers by itself.
  if (again->rank() == 0) again->abort("the second one");
  EXPECT_THAT(error_of([&] {
                for (;;) half->barrier();
              }),
              HasSubstr("the second one"));
  EXPECT_EQ(comm->failure(), "");
  EXPECT_EQ(sum_of_ones(*comm), comm->size());
  again->recover();
  half->barrier();
}

/// After a failure that nobody recovers from.
void the_failed_may_shrink(Rank comm) {
  const Timeout timeout(comm, kLong);
  const auto part = comm->split(0, -comm->rank());
  if (part->rank() == 0) part->abort("for good");
  EXPECT_NE(error_of([&] {
              for (;;) part->barrier();
            }),
            "");
  const auto left = part->shrink();
  EXPECT_EQ(left->size(), part->size());
  EXPECT_EQ(left->rank(), part->rank());
  EXPECT_EQ(left->in_world(left->rank()), left->rank());  // numbered anew
  EXPECT_EQ(sum_of_ones(*left), comm->size());
  EXPECT_NE(part->failure(), "");
  part->recover();
}

/// Who does not come within the deadline is left out, and told so when it comes.
void the_late_are_left_out(Rank comm) {
  if (comm->size() < 3) return;
  const auto part = comm->split(0, 0);
  const int late = 1;
  const auto punctual = comm->split(comm->rank() == late ? 1 : 0, 0);
  if (part->rank() == late) {
    // Until the others have gone on; they say so outside of the part.
    char byte = 0;
    for (int rank = 0; rank < comm->size(); ++rank) {
      if (rank != late) comm->recv(&byte, 1, rank, 8);
    }
    part->set_timeout(kLong);
    EXPECT_THAT(error_of([&] { part->shrink(); }), HasSubstr("left out"));
  } else {
    part->set_timeout(3.0);  // which a busy machine may need to let all others come
    punctual->barrier();
    const auto left = part->shrink();
    left->set_timeout(kLong);
    EXPECT_EQ(left->size(), part->size() - 1);
    EXPECT_EQ(left->rank(), part->rank() - (part->rank() > late ? 1 : 0));
    EXPECT_EQ(sum_of_ones(*left), part->size() - 1);
    const char byte = 0;
    comm->send(&byte, 1, late, 8);
  }
}

}  // namespace

std::vector<Case> health_cases() {
  return {{"health_says_who_waits_for_whom", health_says_who_waits_for_whom},
          {"different_calls_name_both", different_calls_name_both},
          {"errors_carry_the_call", errors_carry_the_call},
          {"all_may_shrink", all_may_shrink},
          {"the_failed_may_shrink", the_failed_may_shrink},
          {"the_late_are_left_out", the_late_are_left_out}};
}

}  // namespace cuop::dist::conformance
