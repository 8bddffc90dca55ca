#include "cuop/backend/cpu/exit_gate.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/fork_steps.h"
#include "cuop/core/home_process.h"

namespace cuop::backend {

namespace {

using Steady = std::chrono::steady_clock;

/// Calls that are under way: those of the even and of the odd rounds, and those that the end does
/// not wait for. A wait for the end begins a new round, so that calls which come later do not
/// lengthen it.
constexpr int kSlots = 3, kForkSlot = 2;
std::atomic<int64_t> under_way[kSlots];
thread_local int64_t of_this_thread[kSlots];
std::atomic<uint32_t> round = 0;
std::atomic<bool> is_closed = false;
std::thread::id ending_thread;  // written before the gate is closed
std::atomic<int> forks = 0;     // that keep the gate closed for a moment

const HomeProcess first_process;

template <class IsOver>
void wait_until(Steady::time_point end, const IsOver& is_over) noexcept {
  while (!is_over() && Steady::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// Waits until nobody is inside who came in those rounds. One thread waits at a time: the one that
/// ends the process.
void await(uint32_t parity) noexcept {
  static Steady::duration left = std::chrono::seconds(10);  // for all waits together
  const Steady::time_point end = Steady::now() + left;
  wait_until(end, [parity] { return under_way[parity] <= 0; });
  left = std::max(Steady::duration::zero(), end - Steady::now());
}

void close_gate() {
  ending_thread = std::this_thread::get_id();
  is_closed = true;
  set_thread_count(1);  // others would stay at the gate while this thread waits for them
  await(0);
  await(1);
}

/// Whether a fork waits for this thread: it is in a call, or holds what forks need.
bool is_awaited() {
  return holds_up_forks() ||
         std::any_of(of_this_thread, of_this_thread + kSlots, [](int64_t own) { return own > 0; });
}

/// This thread's own calls, in which the fork happens, do not count meanwhile, so that forks do not
/// wait for each other.
void before_fork() noexcept {
  ++forks;
  for (int slot = 0; slot < kSlots; ++slot) under_way[slot] -= of_this_thread[slot];
  wait_until(Steady::now() + std::chrono::seconds(5), [] {
    return std::all_of(under_way, under_way + kSlots, [](const auto& calls) { return calls <= 0; });
  });
}

void after_fork() noexcept {
  for (int slot = 0; slot < kSlots; ++slot) under_way[slot] += of_this_thread[slot];
  --forks;
  forks.notify_all();
}

/// A child has none of the other threads that were inside.
void after_fork_in_child() noexcept {
  for (int slot = 0; slot < kSlots; ++slot) under_way[slot] = of_this_thread[slot];
  forks = 0;
}

/// From the start: a fork that begins before the first call would not wait for it.
const bool are_forks_told = [] {
  static constexpr ForkSteps kSteps{&before_fork, &after_fork, &after_fork_in_child};
  set_fork_steps(ForkStage::kCalls, kSteps);
  return true;
}();

/// Handlers of the process's end, and of what comes before a fork, run before those of the
/// libraries that are there.
bool watch() {
  precede_fork_handlers();
  return std::atexit(&close_gate) == 0;
}

}  // namespace

bool is_ending_thread() noexcept {
  return is_closed && std::this_thread::get_id() == ending_thread;
}

bool is_forked_thread() noexcept { return !first_process.is_here() && getpid() == gettid(); }

void await_gated_calls() noexcept { await(round.fetch_add(1) % 2); }

void close_gate_before_libraries() noexcept { watch(); }

GatedCall::GatedCall(Await await)
    : slot_(await == Await::kAtForkAlone ? kForkSlot : static_cast<int>(round.load() % 2)) {
  static const bool is_watched = watch();
  (void)is_watched;
  ++under_way[slot_];
  while (forks > 0 && !is_awaited()) {
    --under_way[slot_];
    for (int others = forks; others > 0; others = forks) forks.wait(others);
    ++under_way[slot_];
  }
  if (is_closed && slot_ != kForkSlot && !is_ending_thread()) {
    --under_way[slot_];
    for (;;) pause();  // the process ends in a moment
  }
  ++of_this_thread[slot_];
}

GatedCall::~GatedCall() {
  --of_this_thread[slot_];
  --under_way[slot_];
}

}  // namespace cuop::backend
