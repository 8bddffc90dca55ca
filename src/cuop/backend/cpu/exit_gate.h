// The end of a process while other threads are inside a library that stops its threads and frees
// its memory then: OpenBLAS hangs or crashes when a call is under way, and so does the NVIDIA
// driver while it makes a context.
#pragma once

#include "cuop/core/noncopyable.h"

namespace cuop::backend {

/// Stands around each call. When the process ends, it waits for the calls that are under way (10 s
/// at most), and threads that come later stay here.
class GatedCall : NonCopyable {
 public:
  GatedCall();
  ~GatedCall();

 private:
  int parity_;  // of the round in which it came
};

/// Waits for the calls that are under way now, not for those that come later. For the thread that
/// ends the process: all such waits together take 10 s at most.
void await_gated_calls() noexcept;

/// Whether this thread ends the process and the gate is closed: work of handlers and of objects
/// that are destroyed then, which no other thread could help with.
bool is_ending_thread() noexcept;

/// What libraries that are there now do when the process ends comes behind that wait.
void close_gate_before_libraries() noexcept;

}  // namespace cuop::backend
