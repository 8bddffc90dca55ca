// A case about the tags of chunks, of which there are so many that they come round again.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "cuop/dist/comm/packet_wire.h"
#include "tests/conformance/communicator_suite.h"
#include "tests/conformance/deadlines.h"
#include "tests/error_of.h"

namespace cuop::dist::rank_test {

/// Announces a message to rank 1 and gives it up at once, for what it comes with does not fit.
inline void give_up(conformance::Rank comm, const std::vector<char>& message) {
  char own[3];
  comm->send(own, 2, comm->rank(), 7);
  comm->sendrecv(message.data(), static_cast<int64_t>(message.size()), 1, own, 3, comm->rank(), 7);
}

/// Rank 0 gives messages up that rank 1 has asked for: the receives that rank 1 has posted for
/// their chunks take nothing of later messages, whose chunks have the same tags again.
inline conformance::Case withdrawn_receives() {
  const auto body = [](conformance::Rank comm) {
    // Once is enough: it takes its time. Two ranks have a core each, and MPI does not yield them.
    if (comm->size() != 3) return;
    const conformance::Timeout timeout(comm, conformance::kLong);
    constexpr int64_t kBytes = 200;
    std::vector<char> data(kBytes, 's');
    for (int round = 0; round < 3; ++round) {
      conformance::all_report_to(comm, 0);
      if (comm->rank() == 0) conformance::pause(0.05);  // until rank 1 waits
      EXPECT_NE(cuop::test::error_of([&] {
                  if (comm->rank() == 0) give_up(comm, data);
                  if (comm->rank() == 1) comm->recv(data.data(), kBytes, 0, 7);
                  for (;;) comm->barrier();
                }),
                "");
      comm->recover();
    }
    if (comm->rank() == 2) comm->set_timeout(5 * conformance::kLong);  // it waits for all messages
    for (int i = 0; i < kChunkTags + 10 && comm->rank() < 2; ++i) {
      const char value = static_cast<char>('a' + i % 26);
      std::fill(data.begin(), data.end(), comm->rank() == 0 ? value : ' ');
      if (comm->rank() == 0) comm->send(data.data(), kBytes, 1, 7);
      if (comm->rank() == 1) comm->recv(data.data(), kBytes, 0, 7);
      ASSERT_EQ(std::count(data.begin(), data.end(), value), kBytes) << "message " << i;
    }
    comm->barrier();
  };
  return {"withdrawn_receives_take_nothing", body};
}

}  // namespace cuop::dist::rank_test
