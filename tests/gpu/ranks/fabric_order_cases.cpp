// Exchanges as work of streams that wait for each other, without the hosts.
#include <gmock/gmock.h>

#include "cuop/backend/current_device.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/memory/current.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "tests/conformance/deadlines.h"
#include "tests/gpu/ranks/fabric_cases.h"
#include "tests/gpu/ranks/held_stream.h"

namespace cuop::dist::rank_test {
namespace {

using conformance::Rank;
using ::testing::HasSubstr;

Device home() { return backend::current_device(); }

std::vector<float> values(const Tensor& tensor) {
  const Tensor host = to_device(tensor, kCpu);
  return {host.data<float>(), host.data<float>() + host.size()};
}
std::vector<float> all(const Tensor& like, float value) {
  return std::vector<float>(static_cast<size_t>(like.size()), value);
}
Tensor filled(float value, const Shape& shape) {
  return full(shape, value, DType::kFloat32, home());
}

/// What a rank sends in a round.
float content(int rank, int round) { return static_cast<float>(100 * round + rank); }

struct Round {
  std::vector<Patch> sends, receives;
};

/// Every rank sends every other one a tensor of its own.
Round round_of(Rank comm, int round, const Shape& shape) {
  Round made;
  for (int peer = 0; peer < comm->size(); ++peer) {
    if (peer == comm->rank()) continue;
    made.sends.push_back({peer, filled(content(comm->rank(), round), shape)});
    made.receives.push_back({peer, filled(-1.0f, shape)});
  }
  return made;
}

bool waits_in_streams(Rank comm) {
  comm->exchange({}, {}, current_stream(home()));
  return comm->exchange_ways().find("streams wait for rank") != std::string::npos;
}

/// What comes behind a call on its stream does not touch what others still read.
void sent_memory_is_used_again_at_once(Rank comm) {
  constexpr int kRounds = 24;
  const Shape shape{211, 63};
  std::vector<Round> rounds;
  for (int round = 0; round < kRounds; ++round) {
    Round now = round_of(comm, round, shape);
    comm->exchange(now.sends, now.receives, current_stream(home()));
    if (round % 2 == 0) {
      for (const Patch& patch : now.sends) copy_into(patch.elements, filled(-7.0f, {1, 1}));
    }
    now.sends.clear();  // given back, and taken again by the next fill
    const Tensor other = filled(-8.0f, shape);
    rounds.push_back(std::move(now));
  }
  for (int round = 0; round < kRounds; ++round) {
    for (const Patch& patch : rounds[static_cast<size_t>(round)].receives) {
      EXPECT_EQ(values(patch.elements), all(patch.elements, content(patch.peer, round)))
          << "round " << round << " from rank " << patch.peer;
    }
  }
}

/// The same of memory that goes back to the system, and other streams' calls in between.
void calls_of_several_streams_keep_their_order(Rank comm) {
  const backend::OwnedStream first(home()), second(home());
  for (int round = 0; round < 8; ++round) {
    const Stream stream = round % 3 == 0   ? first.get()
                          : round % 3 == 1 ? second.get()
                                           : current_stream(home());
    const StreamScope scope(stream);
    Round now = round_of(comm, round, {90, 1000});
    comm->exchange(now.sends, now.receives, stream);
    now.sends.clear();
    memory::current_resource(home()).release_cached();
    if (round % 2 == 0) continue;  // several calls at a time
    for (const Patch& patch : now.receives) {
      EXPECT_EQ(values(patch.elements), all(patch.elements, content(patch.peer, round)));
    }
  }
}

/// What ranks do behind a call does not touch what a late rank has yet to read.
void what_a_late_rank_reads_is_kept(Rank comm) {
  if (!waits_in_streams(comm)) return;
  const Stream stream = current_stream(home());
  backend::Runtime& runtime = backend::runtime(home());
  for (int late = 0; late < comm->size(); ++late) {
    const bool is_late = comm->rank() == late;
    Round round = round_of(comm, late, {50, 30});
    runtime.synchronize(stream);
    HeldStream held(stream);
    if (is_late) {
      comm->exchange({}, round.receives, stream);
    } else {
      held.let_go();
      const Tensor sent = round.sends.front().elements;
      comm->exchange(std::vector<Patch>{{late, sent}}, {}, stream);
      const float other = -7.0f;
      runtime.fill(sent.data(), &other, sizeof other, sent.size(), stream);
    }
    comm->barrier();
    conformance::pause(0.1);
    EXPECT_FALSE(runtime.is_idle(stream));
    comm->barrier();
    held.let_go();
    for (const Patch& patch : round.receives) {
      const float expected = is_late ? content(patch.peer, late) : -1.0f;
      EXPECT_EQ(values(patch.elements), all(patch.elements, expected));
    }
    runtime.synchronize(stream);
  }
}

/// A call returns although the stream of some rank has not come to it.
void calls_return_before_their_work(Rank comm) {
  if (!waits_in_streams(comm)) return;
  const double before = comm->timeout();
  comm->set_timeout(20.0);
  const Stream stream = current_stream(home());
  backend::Runtime& runtime = backend::runtime(home());
  runtime.synchronize(stream);
  for (int holder = 0; holder < comm->size(); ++holder) {
    std::vector<Round> rounds;
    for (int round = 0; round < 3; ++round) {
      rounds.push_back(round_of(comm, round, {40, 30}));
      runtime.synchronize(stream);
    }
    HeldStream held(stream);
    if (comm->rank() != holder) held.let_go();
    for (const Round& each : rounds) comm->exchange(each.sends, each.receives, stream);
    comm->barrier();  // all calls have returned
    EXPECT_FALSE(runtime.is_idle(stream));
    comm->barrier();
    held.let_go();
    for (int round = 0; round < 3; ++round) {
      for (const Patch& patch : rounds[static_cast<size_t>(round)].receives) {
        EXPECT_EQ(values(patch.elements), all(patch.elements, content(patch.peer, round)));
      }
    }
    runtime.synchronize(stream);  // before the flag goes
  }
  comm->set_timeout(before);
}

/// What nobody waits for in a call is waited for where it is used, and an abort ends that.
void an_abort_ends_what_streams_wait_for(Rank comm) {
  if (!waits_in_streams(comm)) return;
  const Stream stream = current_stream(home());
  backend::Runtime& runtime = backend::runtime(home());
  Round round = round_of(comm, 1, {40, 30});
  runtime.synchronize(stream);
  HeldStream held(stream);
  if (comm->rank() != 0) held.let_go();
  comm->exchange(round.sends, round.receives, stream);
  comm->barrier();  // all calls have returned
  if (comm->rank() == 0) {
    conformance::pause(0.3);  // and so has the barrier
    comm->abort("of the test");
    conformance::pause(1.0);  // the others are to be told before this rank's GPU comes to the call
  } else {
    try {
      runtime.synchronize(stream);
      ADD_FAILURE() << "the wait has taken nothing for a result";
    } catch (const CommunicationError& error) {
      EXPECT_EQ(error.rank(), 0) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("means nothing"));
    }
    try {
      comm->barrier();
      ADD_FAILURE() << "nobody knows of the failure";
    } catch (const CommunicationError& error) {
      EXPECT_EQ(error.rank(), 0) << error.what();
    }
  }
  held.let_go();
  comm->recover();
  runtime.synchronize(stream);
  const Round next = round_of(comm, 2, {40, 30});
  comm->exchange(next.sends, next.receives, stream);
  for (const Patch& patch : next.receives) {
    EXPECT_EQ(values(patch.elements), all(patch.elements, content(patch.peer, 2)));
  }
  runtime.synchronize(stream);
}

/// Nor does the time that a call may last go on for ever.
void a_rank_that_does_not_come_is_named(Rank comm) {
  if (!waits_in_streams(comm)) return;
  const double before = comm->timeout();
  const int late = comm->size() - 1;
  const Stream stream = current_stream(home());
  backend::Runtime& runtime = backend::runtime(home());
  Round round = round_of(comm, 1, {40, 30});
  runtime.synchronize(stream);
  comm->set_timeout(1.0);
  HeldStream held(stream);
  if (comm->rank() != late) held.let_go();
  comm->exchange(round.sends, round.receives, stream);
  comm->barrier();  // all calls have returned
  if (comm->rank() != late) {
    try {
      runtime.synchronize(stream);
      ADD_FAILURE() << "the wait has taken nothing for a result";
    } catch (const CommunicationError& error) {
      EXPECT_EQ(error.rank(), late) << error.what();
    }
  } else {
    EXPECT_THROW(for (;;) comm->barrier(), CommunicationError);  // the others have not come
  }
  held.let_go();
  comm->set_timeout(before);
  comm->recover();
  runtime.synchronize(stream);
}

}  // namespace

std::vector<conformance::Case> fabric_order_cases() {
  return {{"sent_memory_is_used_again_at_once", sent_memory_is_used_again_at_once},
          {"calls_of_several_streams_keep_their_order", calls_of_several_streams_keep_their_order},
          {"what_a_late_rank_reads_is_kept", what_a_late_rank_reads_is_kept},
          {"calls_return_before_their_work", calls_return_before_their_work},
          {"an_abort_ends_what_streams_wait_for", an_abort_ends_what_streams_wait_for},
          {"a_rank_that_does_not_come_is_named", a_rank_that_does_not_come_is_named}};
}

}  // namespace cuop::dist::rank_test
