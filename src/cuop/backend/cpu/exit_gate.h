// The end of a process while other threads are inside a library that stops its threads and frees
// its memory then: OpenBLAS hangs or crashes when a call is under way.
#pragma once

#include "cuop/core/noncopyable.h"

namespace cuop::backend {

/// Stands around each call. When the process ends, it waits for the calls that are under way (10 s
/// at most), and threads that come later stay here.
class GatedCall : NonCopyable {
 public:
  GatedCall();
  ~GatedCall();
};

}  // namespace cuop::backend
