// The frame of a rooted call: what it costs beside the bare operation, on tensors so small that the
// arithmetic costs nothing.
//
//   cuop-bench-frame [ranks] [calls]
//
// "bare" is the operation on one tensor, "one rank" the rooted call of a plain process, "ranks" the
// one inside of run_ranks, as rank 0 sees it, on threads of this process. "started" is that call
// with the start and the end of its ranks, which stay from call to call: beside "one rank" it is
// what a plain process pays for more GPUs before any data moves. Below, work of nothing on ranks
// that are made for it and on ranks that stay. Microseconds of a call: the median of 9 rounds. On
// the current device (CUOP_DEVICE).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <utility>
#include <vector>

#include "cuop/backend/current_device.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/stream.h"
#include "cuop/dist/algo/elementwise.h"
#include "cuop/dist/algo/matmul.h"
#include "cuop/dist/algo/reduce.h"
#include "cuop/dist/comm/rank_team.h"
#include "cuop/dist/comm/self.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/matmul/matmul.h"
#include "cuop/ops/reduce/reduce.h"

namespace {

using namespace cuop;  // NOLINT: a program

double median_us(int calls, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  const Device device = backend::current_device();
  const auto wait = [device] {
    if (!device.is_cpu()) backend::runtime(device).synchronize(current_stream(device));
  };
  std::vector<double> rounds;
  for (int round = 0; round < 10; ++round) {
    wait();
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    wait();
    const std::chrono::duration<double, std::micro> taken = Clock::now() - begin;
    if (round > 0) rounds.push_back(taken.count() / calls);
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds[rounds.size() / 2];
}

struct Case {
  const char* name;
  std::function<Tensor()> bare;
  std::function<Tensor(const dist::CommunicatorPtr&, const char* strategy)> rooted;
};

std::vector<Case> cases() {
  const Tensor x = ones({2, 2}, DType::kFloat32, backend::current_device());
  return {{"add", [x] { return add(x, x); },
           [x](const auto& comm, const char* strategy) {
             return dist::add_from_root(comm, x, x, {.strategy = strategy});
           }},
          {"sum", [x] { return sum(x); },
           [x](const auto& comm, const char* strategy) {
             return dist::reduce_from_root(comm, x, {.kind = ReduceKind::kSum},
                                           {.strategy = strategy});
           }},
          {"matmul", [x] { return matmul(x, x); },
           [x](const auto& comm, const char* strategy) {
             return dist::matmul_from_root(comm, x, x, {.strategy = strategy});
           }}};
}

double on_ranks(int ranks, int calls,
                const std::function<void(const dist::CommunicatorPtr&)>& call) {
  double result = 0.0;
  dist::run_ranks(ranks, [&](const dist::CommunicatorPtr& comm) {
    const double taken = median_us(calls, [&] { call(comm); });
    if (comm->rank() == 0) result = taken;
  });
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  const int calls = argc > 2 ? std::atoi(argv[2]) : 2000;
  if (ranks < 1 || calls < 1) {
    std::fprintf(stderr, "cuop-bench-frame: %s ranks, %s calls; at least 1 of each is needed\n",
                 argc > 1 ? argv[1] : "2", argc > 2 ? argv[2] : "2000");
    return 2;
  }
  const Device device = backend::current_device();
  const int starts = std::max(1, calls / 10);
  const dist::CommunicatorPtr self = dist::make_self_communicator();
  std::printf("| microseconds | bare | one rank | frame | %d ranks | %d started |\n", ranks, ranks);
  std::printf("|---|---|---|---|---|---|\n");
  for (const Case& each : cases()) {
    const double bare = median_us(calls, [&] { each.bare(); });
    const double rooted = median_us(calls, [&] { each.rooted(self, ""); });
    const auto on_rank = [&](const dist::CommunicatorPtr& comm) { each.rooted(comm, "root"); };
    const double many = on_ranks(ranks, starts, on_rank);
    const double started = median_us(starts, [&] { dist::run_on_team(ranks, device, on_rank); });
    std::printf("| %s | %.2f | %.2f | %.2f | %.2f | %.2f |\n", each.name, bare, rooted,
                rooted - bare, many, started);
  }
  std::printf("\n| microseconds | %d new ranks | %d that stay |\n|---|---|---|\n", ranks, ranks);
  const dist::RankWork nothing = [](const dist::CommunicatorPtr&) {};
  const dist::RankWork meeting = [](const dist::CommunicatorPtr& comm) { comm->barrier(); };
  for (const auto& [name, work] : {std::pair("nothing", nothing), std::pair("barrier", meeting)}) {
    const double made = median_us(starts, [&] { dist::run_ranks(ranks, device, work); });
    const double stay = median_us(starts, [&] { dist::run_on_team(ranks, device, work); });
    std::printf("| %s | %.2f | %.2f |\n", name, made, stay);
  }
  return 0;
}
