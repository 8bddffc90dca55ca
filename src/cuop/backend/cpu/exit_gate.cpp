#include "cuop/backend/cpu/exit_gate.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "cuop/backend/cpu/thread_pool.h"

namespace cuop::backend {

namespace {

/// Calls that are under way, those of the even and of the odd rounds: a wait begins a new round, so
/// that calls which come later do not lengthen it.
std::atomic<int64_t> under_way[2];
std::atomic<uint32_t> round = 0;
std::atomic<bool> is_closed = false;
std::thread::id ending_thread;  // written before the gate is closed

/// Waits until nobody is inside who came in those rounds. One thread waits at a time: the one that
/// ends the process.
void await(uint32_t parity) noexcept {
  using Steady = std::chrono::steady_clock;
  static Steady::duration left = std::chrono::seconds(10);  // for all waits together
  const Steady::time_point begin = Steady::now();
  const Steady::time_point end = begin + left;
  while (under_way[parity] > 0 && Steady::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  left = std::max(Steady::duration::zero(), end - Steady::now());
}

void close_gate() {
  ending_thread = std::this_thread::get_id();
  is_closed = true;
  set_thread_count(1);  // others would stay at the gate while this thread waits for them
  await(0);
  await(1);
}

/// Handlers of the process's end run before those of the libraries that are there.
bool watch_end() {
  // A forked child has none of the threads that were inside.
  pthread_atfork(nullptr, nullptr, [] { under_way[0] = under_way[1] = 0; });
  return std::atexit(&close_gate) == 0;
}

}  // namespace

bool is_ending_thread() noexcept {
  return is_closed && std::this_thread::get_id() == ending_thread;
}

void await_gated_calls() noexcept { await(round.fetch_add(1) % 2); }

void close_gate_before_libraries() noexcept { std::atexit(&close_gate); }

GatedCall::GatedCall() : parity_(static_cast<int>(round.load() % 2)) {
  static const bool is_watched = watch_end();
  (void)is_watched;
  ++under_way[parity_];
  if (!is_closed || is_ending_thread()) return;
  --under_way[parity_];
  for (;;) pause();  // the process ends in a moment
}

GatedCall::~GatedCall() { --under_way[parity_]; }

}  // namespace cuop::backend
