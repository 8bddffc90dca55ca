#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/ops/create/create.h"
#include "tests/conformance/communicator_suite.h"
#include "tests/conformance/deadlines.h"
#include "tests/error_of.h"

namespace cuop::dist::conformance {

namespace {

using test::caught;
using test::error_of;
using testing::HasSubstr;

/// The last rank does not come; those who wait name it, and it is refused when it comes late.
void absent_from(Rank comm, const std::function<void()>& operation) {
  const Timeout timeout(comm, kShort);
  if (comm->size() == 1) return;
  const int absent = comm->size() - 1;
  if (comm->rank() == absent) {
    come_too_late(comm);
    EXPECT_NE(comm->failure(), "");
    EXPECT_FALSE(comm->is_failure_reported());
  }
  const std::string error = error_of(operation);
  EXPECT_THAT(error, HasSubstr("waited 0.3 s"));
  // Other ranks may be late too on a busy machine: "ranks 1, 3".
  EXPECT_THAT(error, testing::ContainsRegex(cat("(rank |ranks |, )", absent)));
  recover_and_check(comm);
}

void deadline_of_barrier(Rank comm) {
  absent_from(comm, [&] { comm->barrier(); });
}

void deadline_of_all_gather(Rank comm) {
  std::vector<char> all(static_cast<size_t>(comm->size()) * 50'000);
  std::vector<Block> blocks;
  for (int rank = 0; rank < comm->size(); ++rank) blocks.push_back({rank * 50'000, 50'000});
  const std::vector<char> part(50'000);
  absent_from(comm, [&] { comm->all_gather(part.data(), blocks, all.data()); });
}

void deadline_of_all_reduce(Rank comm) {
  std::vector<float> data(40'000, 1.0f);
  absent_from(comm, [&] {
    comm->all_reduce(data.data(), data.data(), 40'000, DType::kFloat32, ReduceKind::kSum);
  });
}

/// A long message to a rank that never takes it.
void deadline_of_send(Rank comm) {
  if (comm->size() == 1) return;
  const Timeout timeout(comm, kShort);
  const int absent = comm->size() - 1;
  const std::vector<char> data(9'000'000);
  if (comm->rank() == absent) come_too_late(comm);
  const std::string error = error_of([&] {
    if (comm->rank() != absent) comm->send(data.data(), 9'000'000, absent, 5);
    comm->barrier();
  });
  EXPECT_THAT(error, HasSubstr("waited 0.3 s"));
  recover_and_check(comm);
}

/// A rank that is late but within the deadline is no failure.
void late_but_in_time(Rank comm) {
  if (comm->rank() == 0) pause(0.15);
  comm->barrier();
  int64_t one = 1;
  comm->broadcast(&one, sizeof(one), 0);
  EXPECT_EQ(comm->failure(), "");
}

void abort_wakes_everyone(Rank comm) {
  const Timeout timeout(comm, 3 * kLong);
  const auto start = std::chrono::steady_clock::now();
  const int culprit = comm->size() / 2;
  if (comm->rank() == culprit) {
    pause(0.2);
    comm->abort("the dog ate it");
    EXPECT_THAT(comm->failure(), HasSubstr("the dog ate it"));
  } else {
    char byte = 0;
    const auto wait = [&] {
      if (comm->rank() % 2 == 0) comm->barrier();
      if (comm->rank() % 2 == 1) comm->recv(&byte, 1, culprit, 9);
    };
    const std::string error = error_of(wait);
    EXPECT_THAT(error, HasSubstr("the dog ate it"));
    EXPECT_THAT(error, HasSubstr(cat("rank ", culprit)));
  }
  // Refused until recovered, also by the rank that aborted.
  EXPECT_THAT(error_of([&] { comm->barrier(); }), HasSubstr("the dog ate it"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  recover_and_check(comm);
}

/// Who aborts because of a failure in a part, and is aborted around it, names whom that names.
void aborts_name_the_first_cause(Rank comm) {
  const Timeout timeout(comm, kLong);
  const int culprit = comm->size() - 1;
  const auto part = comm->split(0, 0);
  part->set_timeout(kLong);
  comm->barrier();
  if (comm->rank() == culprit) part->abort("the first cause");
  EXPECT_THAT(error_of([&] {
                for (;;) part->barrier();
              }),
              HasSubstr("the first cause"));
  part->abort("what came of it");
  comm->barrier();  // around it all is well so far
  all_report_to_rank_0(comm);
  if (comm->rank() == 0) comm->abort("and of that");
  const auto told = caught<CommunicationError>([&] {
    for (;;) comm->barrier();
  });
  EXPECT_EQ(told.rank(), culprit) << told.what();
  recover_and_check(comm);
}

/// A rank that ends a call for what another has done names that one.
void aborts_name_another_rank(Rank comm) {
  const Timeout timeout(comm, kLong);
  const auto part = comm->split(0, -comm->rank());  // counted the other way round
  part->set_timeout(kLong);
  comm->barrier();
  if (comm->rank() == 0) part->abort_for(comm->size() - 1, "its memory is gone");
  const auto told = caught<CommunicationError>([&] {
    for (;;) part->barrier();
  });
  EXPECT_EQ(told.rank(), comm->size() - 1) << told.what();
  EXPECT_THAT(told.what(), HasSubstr("its memory is gone"));
  recover_and_check(part);
}

/// Calls of one name that differ in what must be the same on all ranks: nobody takes the bytes of
/// another call, and all are told what two ranks were called with.
void other_arguments_name_both(Rank comm) {
  if (comm->size() == 1) return;
  const Timeout timeout(comm, kLong);
  const bool is_odd = comm->rank() == comm->size() - 1;
  std::vector<double> data(5000, 1.0), result(5000);
  struct Given {
    int64_t count;
    DType dtype;
    ReduceKind op;
    const char* words;
  };
  const Given usual{5000, DType::kFloat32, ReduceKind::kSum, "count 5000 of float32, sum"};
  for (const Given& other : {Given{8, DType::kFloat32, ReduceKind::kSum, "count 8 of float32, sum"},
                             Given{5000, DType::kInt32, ReduceKind::kSum, "of int32, sum"},
                             Given{5000, DType::kFloat32, ReduceKind::kMax, "of float32, max"}}) {
    const Given& given = is_odd ? other : usual;
    all_report_to(comm, comm->size() - 1);  // whose call fails those that still wait for another
    const std::string error = error_of(
        [&] { comm->all_reduce(data.data(), result.data(), given.count, given.dtype, given.op); });
    EXPECT_THAT(error, HasSubstr("was called with"));
    EXPECT_THAT(error, HasSubstr(usual.words));
    EXPECT_THAT(error, HasSubstr(other.words));
    EXPECT_THAT(error, HasSubstr(cat("rank ", comm->size() - 1)));
    recover_and_check(comm);
  }
}

void parent_fails_its_children(Rank comm) {
  const auto half = comm->split(comm->rank() % 2, 0);
  const Timeout timeout(comm, kLong);
  half->set_timeout(kLong);
  all_report_to_rank_0(comm);
  if (comm->rank() == 0) comm->abort("the parent");
  const auto forever = [&] {
    for (;;) half->barrier();
  };
  EXPECT_THAT(error_of(forever), HasSubstr("the parent"));
  EXPECT_NE(comm->failure(), "");
  EXPECT_NE(error_of([&] { comm->barrier(); }), "");
  recover_and_check(comm);
  all_report_to_rank_0(half);
  // The other way round the parent stays usable.
  if (half->rank() == 0) half->abort("the child");
  EXPECT_THAT(error_of(forever), HasSubstr("the child"));
  comm->barrier();
  half->recover();
  half->barrier();
}

/// Rank 0 sends something else than the others expect.
void tensors_that_do_not_fit_are_refused(Rank comm) {
  if (comm->size() == 1) return;
  const Timeout timeout(comm, kLong);
  const Tensor expected = empty({4, 3}, DType::kFloat32);
  for (const Tensor& sent : {empty({4, 2}, DType::kFloat32), Tensor()}) {
    std::vector<Patch> sends, receives;
    for (int peer = 0; peer < comm->size(); ++peer) {
      receives.push_back({peer, empty(expected.shape(), expected.dtype())});
      const Tensor& tensor = comm->rank() == 0 ? sent : expected;
      if (tensor.is_defined()) sends.push_back({peer, tensor});
    }
    const std::string error = error_of([&] {
      comm->exchange(sends, receives);
      for (;;) comm->barrier();
    });
    EXPECT_THAT(error, HasSubstr("expects"));
    EXPECT_THAT(error, HasSubstr("rank 0"));
    comm->recover();
  }
}

/// Rank 0 sends the next one more rows than that expects, or fewer.
void tensors_of_another_length_are_refused(Rank comm) {
  if (comm->size() == 1) return;
  const Timeout timeout(comm, kLong);
  for (const int64_t rows : {3, 5, 90'000}) {
    std::vector<Patch> sends, receives;
    if (comm->rank() == 0) sends.push_back({1, zeros({rows, 3}, DType::kFloat32)});
    const Tensor expected = full({4, 3}, 7, DType::kFloat32);
    if (comm->rank() == 1) receives.push_back({0, expected});
    const std::string error = error_of([&] {
      comm->exchange(sends, receives);
      for (;;) comm->barrier();
    });
    EXPECT_THAT(error, HasSubstr("expects"));
    EXPECT_EQ(expected.data<float>()[0], 7) << "what does not fit was taken";
    comm->recover();
  }
}

/// A wrong argument on one rank raises there, and with its text everywhere else.
void refused_call(Rank comm) {
  if (comm->size() == 1) return;
  const Timeout timeout(comm, kLong);
  const int culprit = comm->size() / 2;
  all_report_to(comm, culprit);
  int64_t value = comm->rank();
  if (comm->rank() == culprit) {
    EXPECT_THROW(comm->broadcast(&value, 8, comm->size()), IndexError);
  } else {
    const std::string error = error_of([&] {
      comm->broadcast(&value, 8, 0);
      for (;;) comm->barrier();  // the root has nobody to wait for
    });
    EXPECT_THAT(error, HasSubstr(cat("rank ", culprit)));
    EXPECT_THAT(error, HasSubstr(cat("rank ", comm->size(), " is out of range")));
  }
  comm->recover();
  all_report_to_rank_0(comm);
}

/// Somebody waits for the message that another rank refuses to send.
void refused_message(Rank comm) {
  if (comm->size() == 1) return;
  const Timeout timeout(comm, kLong);
  all_report_to(comm, 0);
  char byte = 0;
  if (comm->rank() == 0) {
    EXPECT_THROW(comm->send(&byte, 1, 1, 1 << 16), ExecutionError);
  } else {
    const std::string error = error_of([&] {
      if (comm->rank() == 1) comm->recv(&byte, 1, 0, 4);
      comm->barrier();
    });
    EXPECT_THAT(error, HasSubstr("waits for rank 0, which refused a message"));
    EXPECT_THAT(error, HasSubstr("tag 65536"));
  }
  comm->recover();
}

/// Rank 0 waits in a part for rank 1, which waits in the whole for the last rank: that is the one
/// to blame, though rank 0 does not wait for it and it is not in the part.
void the_silent_rank_is_blamed_across_parts(Rank comm) {
  const int last = comm->size() - 1;
  if (last < 2) return;
  const auto part = comm->split(comm->rank() < last ? 0 : 1, 0);
  const Timeout timeout(comm, kLong);
  part->set_timeout(comm->rank() == 0 ? kShort : kLong);
  all_report_to_rank_0(comm);
  // Rank 0 comes when the others wait; for whom is noted some moments after what they are in.
  for (int rank = 1; comm->rank() == 0 && rank < last; ++rank) {
    const auto waits_for = [&] { return comm->health()[static_cast<size_t>(rank)].waits_for; };
    for (double waited = 0; waits_for() != last && waited < kLong / 2; waited += 0.01) {
      pause(0.01);
    }
  }
  if (comm->rank() == last) come_too_late(comm);
  char byte = 0;
  const auto error = caught<CommunicationError>([&] {
    if (comm->rank() == 0) part->recv(&byte, 1, 1, 3);
    if (comm->rank() > 0 && comm->rank() < last) comm->recv(&byte, 1, last, 3);
    comm->barrier();
  });
  EXPECT_EQ(error.rank(), last) << error.what();
  EXPECT_THAT(error.what(), HasSubstr(cat("not answering: rank ", last)));
  recover_and_check(comm);
}

/// Ranks of a part are named by their numbers in the whole.
void parts_name_ranks_of_the_whole(Rank comm) {
  if (comm->size() < 4) return;
  const auto half = comm->split(comm->rank() % 2, 0);
  EXPECT_EQ(half->in_world(half->rank()), comm->rank());
  half->set_timeout(kLong);
  if (comm->rank() == 3) half->abort("enough");
  if (comm->rank() % 2 == 1) {
    const auto error = caught<CommunicationError>([&] { half->barrier(); });
    EXPECT_EQ(error.rank(), 3) << error.what();
    half->recover();
  }
  comm->barrier();
}

/// A rank that recovers alone raises and may try again. In a part: over the whole, which has not
/// failed, the others hear that rank 0 has given up, however long a busy machine takes for that.
void recovery_has_a_deadline(Rank comm) {
  if (comm->size() == 1) return;
  const Timeout timeout(comm, kLong);
  const auto part = comm->split(0, comm->rank());
  char byte = 0;
  if (comm->rank() == 0) {
    part->set_timeout(kShort);
    part->abort("lonely");
    EXPECT_THAT(error_of([&] { part->recover(); }),
                HasSubstr(comm->size() == 2 ? "for rank 1" : "for ranks 1"));
    EXPECT_NE(part->failure(), "");
    for (int rank = 1; rank < comm->size(); ++rank) comm->send(&byte, 1, rank, 97);
  } else {
    comm->recv(&byte, 1, 0, 97);
    EXPECT_NE(error_of([&] { part->barrier(); }), "");
  }
  recover_and_check(part);
  comm->barrier();
}

}  // namespace

std::vector<Case> failure_cases() {
  return {{"deadline_of_barrier", deadline_of_barrier},
          {"deadline_of_all_gather", deadline_of_all_gather},
          {"deadline_of_all_reduce", deadline_of_all_reduce},
          {"deadline_of_send", deadline_of_send},
          {"late_but_in_time", late_but_in_time},
          {"abort_wakes_everyone", abort_wakes_everyone},
          {"aborts_name_the_first_cause", aborts_name_the_first_cause},
          {"aborts_name_another_rank", aborts_name_another_rank},
          {"other_arguments_name_both", other_arguments_name_both},
          {"parent_fails_its_children", parent_fails_its_children},
          {"tensors_that_do_not_fit_are_refused", tensors_that_do_not_fit_are_refused},
          {"tensors_of_another_length_are_refused", tensors_of_another_length_are_refused},
          {"refused_call", refused_call},
          {"refused_message", refused_message},
          {"the_silent_rank_is_blamed_across_parts", the_silent_rank_is_blamed_across_parts},
          {"parts_name_ranks_of_the_whole", parts_name_ranks_of_the_whole},
          {"recovery_has_a_deadline", recovery_has_a_deadline}};
}

}  // namespace cuop::dist::conformance
