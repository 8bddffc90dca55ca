#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <thread>

#include "cuop/core/text.h"
#include "cuop/dist/agree.h"
#include "tests/conformance/communicator_suite.h"
#include "tests/conformance/deadlines.h"
#include "tests/error_of.h"

namespace cuop::dist::conformance {

namespace {

using test::error_of;
using testing::HasSubstr;

void nothing() {}

void values(Rank comm) {
  const int last = comm->size() - 1;
  EXPECT_EQ(agree_min(*comm, int64_t{10} - comm->rank()), 10 - last);
  EXPECT_EQ(agree_max(*comm, 0.5 * comm->rank()), 0.5 * last);
  EXPECT_TRUE(agree_all(*comm, true));
  EXPECT_FALSE(agree_all(*comm, comm->rank() != last));
  for (const size_t length : {0, 4, 247, 248, 249, 5000}) {  // short texts go with their length
    std::string said;
    for (size_t i = 0; i < length; ++i) said += static_cast<char>('a' + i % 26);
    EXPECT_EQ(broadcast_text(*comm, comm->rank() == last ? said : "other", last), said);
  }
  const auto texts = gather_texts(*comm, std::string(static_cast<size_t>(comm->rank()), 'z'));
  for (size_t rank = 0; rank < texts.size(); ++rank) EXPECT_EQ(texts[rank].size(), rank);
}

void same_texts(Rank comm) {
  agree_same(*comm, "plan", "ring of 4");
  if (comm->size() == 1) return;
  const bool is_odd_one = comm->rank() == comm->size() - 1;
  const std::string error =
      error_of([&] { agree_same(*comm, "plan", is_odd_one ? "tree of 2" : "ring of 4"); });
  EXPECT_THAT(error, HasSubstr("plan: the ranks disagree: rank 0 has ring of 4"));
  EXPECT_THAT(error, HasSubstr(cat("rank ", comm->size() - 1, " has tree of 2")));
  agree_same(*comm, "plan", "still usable");
}

void failed_preparation(Rank comm) {
  const int culprit = comm->size() / 2;
  bool is_body_run = false;
  const auto call = [&] {
    run_together(
        *comm, "matmul [4, 5] x [6, 3]",
        [&] {
          if (comm->rank() == culprit) throw ShapeError("matmul: 5 columns meet 6 rows");
        },
        [&] { is_body_run = true; });
  };
  if (comm->rank() == culprit) {
    EXPECT_EQ(error_of<ShapeError>(call), "matmul: 5 columns meet 6 rows");
  } else {
    EXPECT_EQ(error_of(call), cat("matmul [4, 5] x [6, 3]: rank ", culprit, " of ", comm->size(),
                                  " failed: matmul: 5 columns meet 6 rows"));
  }
  EXPECT_FALSE(is_body_run);
  EXPECT_EQ(comm->failure(), "");
}

void mismatched_calls(Rank comm) {
  if (comm->size() == 1) return;
  const bool is_odd_one = comm->rank() == 1;
  const std::string error =
      error_of([&] { run_together(*comm, is_odd_one ? "sum [7]" : "fft [8]", nothing, nothing); });
  EXPECT_THAT(error, HasSubstr("rank 0 called fft [8]"));
  EXPECT_THAT(error, HasSubstr("rank 1 called sum [7]"));
  run_together(*comm, "add", nothing, nothing);
}

void failed_body(Rank comm) {
  const int culprit = comm->size() - 1;
  const auto call = [&] {
    run_together(*comm, "conv2d", nothing, [&] {
      if (comm->rank() == culprit) throw std::bad_alloc();
      if (comm->rank() % 2 == 0) comm->barrier();
      // The others find out when the call closes. To close it before would be a mismatched call.
      while (comm->failure().empty()) std::this_thread::yield();
    });
  };
  if (comm->rank() == culprit) {
    error_of<std::bad_alloc>(call);
  } else {
    const std::string error = error_of(call);
    EXPECT_THAT(error, HasSubstr(cat("rank ", culprit)));
    EXPECT_THAT(error, HasSubstr("bad_alloc"));
  }
  EXPECT_NE(comm->failure(), "");
  int64_t sum = 0;
  run_together(*comm, "next call", nothing, [&] {
    const int64_t one = 1;
    comm->all_reduce(&one, &sum, 1, DType::kInt64, ReduceKind::kSum);
  });
  EXPECT_EQ(sum, comm->size());
}

/// A rank comes to the call when the others have given up: it raises for this call, not the next.
void late_to_a_call(Rank comm) {
  if (comm->size() == 1) return;
  const Timeout timeout(comm, 0.2);
  if (comm->rank() == 0) pause(0.4);
  for (int i = 0; comm->rank() == 0 && comm->failure().empty() && i < 1000; ++i) {
    pause(0.02);  // until they have given up
  }
  EXPECT_THAT(error_of([&] { run_together(*comm, "first", nothing, nothing); }),
              HasSubstr("waited"));
  comm->set_timeout(kLong);
  run_together(*comm, "second", nothing, nothing);
}

}  // namespace

std::vector<Case> agreement_cases() {
  return {{"agreed_values", values},
          {"agreed_texts", same_texts},
          {"failed_preparation", failed_preparation},
          {"mismatched_calls", mismatched_calls},
          {"failed_body", failed_body},
          {"late_to_a_call", late_to_a_call}};
}

}  // namespace cuop::dist::conformance
