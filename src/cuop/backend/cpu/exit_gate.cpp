#include "cuop/backend/cpu/exit_gate.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

namespace cuop::backend {

namespace {

std::atomic<int64_t> under_way = 0;
std::atomic<bool> is_closed = false;
std::thread::id ending_thread;  // written before the gate is closed

void close_gate() {
  ending_thread = std::this_thread::get_id();
  is_closed = true;
  await_gated_calls();
}

/// Handlers of the process's end run before those of the libraries that are there.
bool watch_end() {
  // A forked child has none of the threads that were inside.
  pthread_atfork(nullptr, nullptr, [] { under_way = 0; });
  return std::atexit(&close_gate) == 0;
}

}  // namespace

void await_gated_calls() noexcept {
  using Clock = std::chrono::steady_clock;
  static const Clock::time_point end = Clock::now() + std::chrono::seconds(10);  // of all waits
  while (under_way > 0 && Clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void close_gate_before_libraries() noexcept { std::atexit(&close_gate); }

GatedCall::GatedCall() {
  static const bool is_watched = watch_end();
  (void)is_watched;
  ++under_way;
  if (!is_closed || std::this_thread::get_id() == ending_thread) return;
  --under_way;
  for (;;) pause();  // the process ends in a moment
}

GatedCall::~GatedCall() { --under_way; }

}  // namespace cuop::backend
