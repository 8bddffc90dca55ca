// The end of a process, and its fork, while other threads are inside a library that stops its
// threads and frees its memory then: OpenBLAS hangs or crashes when a call is under way, and so
// does the NVIDIA driver while it makes a context. A forked child keeps what such a call had
// locked.
#pragma once

#include "cuop/core/noncopyable.h"

namespace cuop::backend {

/// Stands around each call. When the process ends, it waits for the calls that are under way (10 s
/// at most), and threads that come later stay here. A fork waits for them too (5 s at most, not for
/// those of its own thread), and threads that come meanwhile go on after it.
class GatedCall : NonCopyable {
 public:
  enum class Await { kAtEndAndFork, kAtForkAlone };

  explicit GatedCall(Await await = Await::kAtEndAndFork);
  ~GatedCall();

 private:
  int slot_;  // where it is counted
};

/// Waits for the calls that are under way now, not for those that come later. For the thread that
/// ends the process: all such waits together take 10 s at most.
void await_gated_calls() noexcept;

/// Whether this thread ends the process and the gate is closed: work of handlers and of objects
/// that are destroyed then, which no other thread could help with.
bool is_ending_thread() noexcept;

/// Whether this is the thread that came out of a fork: what a library keeps for it may speak of
/// threads that are not in this process.
bool is_forked_thread() noexcept;

/// What libraries that are there now do when the process ends or forks comes behind that wait.
void close_gate_before_libraries() noexcept;

}  // namespace cuop::backend
