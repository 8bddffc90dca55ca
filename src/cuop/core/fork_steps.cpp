#include "cuop/core/fork_steps.h"

#include <pthread.h>

#include <array>
#include <atomic>

namespace cuop {

namespace {

constexpr size_t kStages = 4;
constinit std::array<std::atomic<const ForkSteps*>, kStages> stages{};
constinit std::atomic<bool> is_registered = false;
constinit std::atomic<int> forks_before = 0;

void register_once() noexcept {
  if (!is_registered.exchange(true)) precede_fork_handlers();
}

/// The handlers are there once for each registration: the first that runs before a fork takes all
/// steps, and so does the last that runs after it.
struct ThisThread {
  int handlers = 0;                               // that have begun and not ended
  std::array<const ForkSteps*, kStages> begun{};  // what is set meanwhile does not end it
};
constinit thread_local ThisThread forking;

void before_fork() noexcept {
  if (forking.handlers++ > 0) return;
  for (size_t i = 0; i < kStages; ++i) {
    forking.begun[i] = stages[i];
    if (forking.begun[i] != nullptr) forking.begun[i]->before();
  }
}

void after_fork(void (*ForkSteps::*step)() noexcept) noexcept {
  if (forking.handlers == 0 || --forking.handlers > 0) return;
  if (step == &ForkSteps::in_child) ++forks_before;
  for (size_t i = kStages; i-- > 0;) {
    if (forking.begun[i] != nullptr) (forking.begun[i]->*step)();
  }
}

}  // namespace

void set_fork_steps(ForkStage stage, const ForkSteps& steps) noexcept {
  stages[static_cast<size_t>(stage)] = &steps;
  register_once();
}

int forks_before_this_process() noexcept {
  if (!is_registered) register_once();
  return forks_before;
}

void precede_fork_handlers() noexcept {
  pthread_atfork(
      &before_fork, [] { after_fork(&ForkSteps::in_parent); },
      [] { after_fork(&ForkSteps::in_child); });
}

}  // namespace cuop
