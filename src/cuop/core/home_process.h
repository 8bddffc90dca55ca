// Which process something belongs to, of those that fork.
#pragma once

#include "cuop/core/fork_steps.h"

namespace cuop {

/// The process that makes it. A fork has a copy, and not the threads, connections and duties of the
/// other.
class HomeProcess {
 public:
  bool is_here() const noexcept { return forks_before_ == forks_before_this_process(); }

 private:
  int forks_before_ = forks_before_this_process();
};

}  // namespace cuop
