// Which process something belongs to, of those that fork.
#pragma once

#include <unistd.h>

namespace cuop {

/// The process that makes it. A fork has a copy, and not the threads, connections and duties of the
/// other.
class HomeProcess {
 public:
  bool is_here() const { return process_ == getpid(); }

 private:
  pid_t process_ = getpid();
};

}  // namespace cuop
