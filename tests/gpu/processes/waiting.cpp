#include "tests/gpu/processes/waiting.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <thread>
#include <vector>

#include "cuop/backend/current_device.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "tests/dist/socket_ranks.h"
#include "tests/gpu/ranks/held_stream.h"

namespace cuop::dist::rank_test {
namespace {

struct Call {
  std::vector<Patch> sends, receives;
};

Call call_of(const Communicator& comm, int round) {
  const Device device = backend::current_device();
  const auto filled = [&](double value) { return full({300, 70}, value, DType::kFloat64, device); };
  Call call;
  for (int peer = 0; peer < comm.size(); ++peer) {
    if (peer == comm.rank()) continue;
    call.sends.push_back({peer, filled(10.0 * round + comm.rank())});
    call.receives.push_back({peer, filled(-1.0)});
  }
  return call;
}

bool is_right(const Call& call, int round) {
  return std::ranges::all_of(call.receives, [round](const Patch& patch) {
    const Tensor host = to_device(patch.elements, kCpu);
    const double* const first = host.data<double>();
    const double expected = 10.0 * round + patch.peer;
    return std::count(first, first + host.size(), expected) == host.size();
  });
}

/// Whether the work ends in time with an error that names the rank.
bool names(int rank, const char* what, const std::function<void()>& work) {
  constexpr double kInTime = 8.0;
  const auto begin = std::chrono::steady_clock::now();
  try {
    work();
    std::cerr << what << ": nothing was raised" << std::endl;
    return false;
  } catch (const CommunicationError& error) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const bool is_expected = error.rank() == rank && took.count() < kInTime;
    if (!is_expected) {
      std::cerr << what << " after " << took.count() << " s: " << error.what() << std::endl;
    }
    return is_expected;
  }
}

/// What rank 2 has yet to send rank 1, that one passes on to rank 0, which knows nothing of rank 2:
/// it is no result there either when rank 2 dies.
int run_passed_on(const std::shared_ptr<Communicator>& comm, Stream stream) {
  const int rank = comm->rank();
  const auto first = comm->split(rank < 2 ? 0 : -1, rank),
             second = comm->split(rank > 0 ? 0 : -1, rank);
  backend::Runtime& runtime = backend::runtime(stream.device);
  const Tensor tensor = full({300, 70}, 5.0, DType::kFloat64, stream.device);
  // From the second rank of a pair to the first.
  const auto exchange = [&](const std::shared_ptr<Communicator>& pair) {
    if (!pair) return;
    const std::vector<Patch> patch{{1 - pair->rank(), tensor}}, none;
    pair->exchange(pair->rank() == 1 ? patch : none, pair->rank() == 0 ? patch : none, stream);
  };
  exchange(first);  // their ways are found
  exchange(second);
  runtime.synchronize(stream);
  comm->barrier();
  if (rank == 2) new HeldStream(stream);
  exchange(second);
  exchange(first);
  if (rank == 2) {
    pause(0.2);
    return kill(getpid(), SIGKILL);
  }
  return names(2, "wait", [&] { runtime.synchronize(stream); }) ? 0 : 1;
}

}  // namespace

int run_waiting(const std::shared_ptr<Communicator>& comm, std::string_view what) {
  comm->set_timeout(60.0);
  const int last = comm->size() - 1;
  const Stream stream = current_stream(backend::current_device());
  backend::Runtime& runtime = backend::runtime(stream.device);
  const Call first = call_of(*comm, 1), second = call_of(*comm, 2);
  comm->exchange(first.sends, first.receives, stream);
  if (!is_right(first, 1)) return 1;
  if (comm->exchange_ways().find("streams wait for rank") == std::string::npos) {
    std::cerr << "hosts wait: " << comm->exchange_ways() << std::endl;
    return 1;
  }
  comm->barrier();
  if (what == "passed_on") return run_passed_on(comm, stream);
  HeldStream* held = nullptr;  // to the end of the process
  if (comm->rank() == last) held = new HeldStream(stream);
  comm->exchange(second.sends, second.receives, stream);
  if (comm->rank() == last) {
    pause(0.2);  // all calls have returned
    if (what != "left") return kill(getpid(), what == "killed" ? SIGKILL : SIGSTOP);
    std::thread([held] {
      pause(0.5);
      held->let_go();
    }).detach();
    return 0;
  }
  if (what == "left") return is_right(second, 2) ? 0 : 1;
  const bool is_told = names(last, "wait", [&] { runtime.synchronize(stream); }) &&
                       names(last, "copy", [&] { is_right(second, 2); }) &&
                       names(last, "call", [&] { comm->barrier(); });
  if (!is_told) return 1;
  const auto rest = comm->shrink();
  const Call third = call_of(*rest, 3);
  rest->exchange(third.sends, third.receives, stream);
  return rest->size() == last && is_right(third, 3) ? 0 : 1;
}

}  // namespace cuop::dist::rank_test
