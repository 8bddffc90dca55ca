// What is done around a fork, so that its child finds nothing that a thread was in the middle of:
// it has that thread's locks, as they were, and not the thread.
#pragma once

namespace cuop {

/// In this order before a fork, and backwards after it: calls into libraries end while locks can
/// still be taken, libraries are brought to rest when nobody can call them any more, and whoever
/// holds a lock may still allocate.
enum class ForkStage { kCalls, kLocks, kLibraries, kPools };

/// All are called by the thread that forks.
struct ForkSteps {
  void (*before)() noexcept;
  void (*in_parent)() noexcept;
  void (*in_child)() noexcept;
};

/// For every fork from now on. A stage has one set of steps, which must live as long as the
/// process.
void set_fork_steps(ForkStage stage, const ForkSteps& steps) noexcept;

/// How many forks lie between this process and the first in which this was asked: what belongs to
/// one process knows it by that, for less than the system takes to tell the number of a process.
int forks_before_this_process() noexcept;

/// All steps now come before what the libraries that are there do before a fork.
void precede_fork_handlers() noexcept;

}  // namespace cuop
