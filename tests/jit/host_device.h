// Kernel text on the host, for tests that run a kernel's own text beside the CPU's kernels. The
// names that NVRTC has built in are the simulated device's (tests/simulator), and so are the
// threads of a block, where it can be had; under the sanitizers, which then see races between them,
// they are threads of the host. Blocks run one after the other. Includes of kernel text follow this
// one.
#pragma once

#ifdef CUOP_TEST_FIBERS
#include <gtest/gtest.h>

#include "tests/simulator/block.h"
#else
#include <algorithm>
#include <barrier>
#include <cstddef>
#include <deque>
#include <thread>
#include <vector>
#endif

#include "tests/simulator/kernel_interface.h"

namespace cuop::simulator {
inline thread_local Running running;
}  // namespace cuop::simulator

#include "tests/simulator/device_text.h"

namespace cuop::test {

/// A kernel without barriers. Backwards, so that nothing depends on threads being in order.
template <class Kernel>
void run_threads(unsigned blocks, unsigned threads, Kernel kernel) {
  simulator::Running& running = simulator::running;
  running.grid = {blocks, 1, 1};
  running.block_size = {threads, 1, 1};
  for (unsigned block = blocks; block-- > 0;) {
    for (unsigned thread = threads; thread-- > 0;) {
      running.block = {block, 0, 0};
      running.thread = {thread, 0, 0};
      kernel();
    }
  }
}

#ifdef CUOP_TEST_FIBERS

/// One for all tests: its stacks take time to make.
inline simulator::BlockRunner& block_runner() {
  static simulator::BlockRunner runner(1);
  return runner;
}

/// A kernel whose threads meet at barriers.
template <class Kernel>
void run_together(unsigned blocks, unsigned threads, Kernel kernel) {
  simulator::Running& running = simulator::running;
  simulator::BlockRunner& runner = block_runner();
  runner.prepare(running);
  running.grid = {blocks, 1, 1};
  running.block_size = {threads, 1, 1};
  const auto call = [](void** given) { (*static_cast<Kernel*>(*given))(); };
  void* given = &kernel;
  for (unsigned block = 0; block < blocks; ++block) {
    running.block = {block, 0, 0};
    ASSERT_EQ(runner.run(running, call, &given), "");
  }
}

#else

/// Where the threads of the running block meet: all of them, and those of each warp.
struct HostBarriers {
  explicit HostBarriers(unsigned threads) : block(static_cast<std::ptrdiff_t>(threads)) {
    for (unsigned first = 0; first < threads; first += 32) {
      warps.emplace_back(static_cast<std::ptrdiff_t>(std::min(32u, threads - first)));
    }
  }
  std::barrier<> block;
  std::deque<std::barrier<> > warps;
};
inline HostBarriers* host_barriers = nullptr;

/// The lanes of a warp are all of it.
inline void meet(simulator::Group group, unsigned, const char*, int) {
  const bool is_warp = group != simulator::Group::kBlock;
  (is_warp ? host_barriers->warps[simulator::thread_number() / 32] : host_barriers->block)
      .arrive_and_wait();
}

/// A kernel whose threads meet at barriers.
template <class Kernel>
void run_together(unsigned blocks, unsigned threads, Kernel kernel) {
  HostBarriers barriers(threads);
  host_barriers = &barriers;
  std::vector<unsigned char> exchange(threads * simulator::kExchangeBytes);
  std::vector<std::thread> started;
  for (unsigned thread = 0; thread < threads; ++thread) {
    started.emplace_back([&, thread] {
      simulator::Running& running = simulator::running;
      running.meet = &meet;
      running.exchange = exchange.data();
      running.grid = {blocks, 1, 1};
      running.block_size = {threads, 1, 1};
      running.thread = {thread, 0, 0};
      for (unsigned block = 0; block < blocks; ++block) {
        running.block = {block, 0, 0};
        kernel();
        barriers.block.arrive_and_wait();  // the next block takes over the shared memory
      }
    });
  }
  for (std::thread& each : started) each.join();
}

#endif

}  // namespace cuop::test
