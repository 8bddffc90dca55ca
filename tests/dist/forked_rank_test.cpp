// Children that ranks fork, which are none themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/dist/comm/run_ranks.h"
#include "cuop/dist/comm/self.h"
#include "tests/error_of.h"
#include "tests/own_process.h"
#include "tests/sanitized.h"

namespace cuop::dist {

namespace {

using testing::HasSubstr;

using Comm = std::shared_ptr<Communicator>;

/// How many calls of the communicator were not refused as they must be.
int count_not_refused(const Comm& comm) {
  float x = 0;
  const std::vector<std::function<void()>> calls{
      [&] { comm->barrier(); },
      [&] { comm->broadcast(&x, 4, 0); },
      [&] { comm->send(&x, 4, 0, 0); },
      [&] { comm->recv(&x, 4, 0, 0); },
      [&] { comm->sendrecv(&x, 4, 0, &x, 4, 0, 0); },
      [&] { comm->exchange({}, {}); },
      [&] { comm->split(0, 0); },
      [&] { comm->recover(); },
      [&] { comm->shrink(); },
  };
  int wrong = 0;
  for (const auto& call : calls) {
    try {
      call();
      ++wrong;
    } catch (const CommunicationError& error) {
      const bool is_right =
          std::string(error.what()).find("forked from rank 1 of 2") != std::string::npos;
      wrong += is_right ? 0 : 1;
    }
  }
  return wrong;
}

TEST(ForkedRank, MakesNoCallsOfItsParent) {
  if (test::kIsSanitized) GTEST_SKIP() << "sanitizers do not survive a fork amid other threads";
  run_ranks(2, [](const Comm& comm) {
    if (comm->rank() == 1) {
      EXPECT_TRUE(test::ends_in_fork([&] {
        if (count_not_refused(comm) > 0) _exit(1);
        run_ranks(2, [](const Comm& own) { own->barrier(); });
      }));
    }
    comm->barrier();
  });
}

TEST(ForkedRank, AloneGoesOnAlone) {
  const Comm comm = make_self_communicator();
  EXPECT_TRUE(test::ends_in_fork([&] {
    float x = 0;
    comm->barrier();
    comm->broadcast(&x, 4, 0);
  }));
}

TEST(RunRanks, NeedsSomethingToDo) {
  EXPECT_THAT(test::error_of<ExecutionError>([] { run_ranks(2, nullptr); }),
              HasSubstr("run_ranks: "));
}

}  // namespace

}  // namespace cuop::dist
