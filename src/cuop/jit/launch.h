// The launch of a kernel: its shape, and the launches of a thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "cuop/core/noncopyable.h"

namespace cuop::jit {

struct LaunchShape {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned threads = 1, threads_y = 1, threads_z = 1;
  unsigned shared_bytes = 0;  ///< beyond those that the kernel declares
};
/// So many blocks along the first axis, or as many as a grid has: kernels go round again.
inline unsigned grid_blocks(int64_t wanted) {
  return static_cast<unsigned>(std::min<int64_t>(wanted, std::numeric_limits<int32_t>::max()));
}

/// The launches of this thread while it lives: two ways to do the same work with the same launches
/// are one.
class LaunchWatch : NonCopyable {
 public:
  struct Launch {
    size_t binary = 0;
    unsigned grid_x = 1, grid_y = 1, grid_z = 1, threads = 1;
    bool operator==(const Launch&) const = default;
  };
  LaunchWatch() : before_(current_) { current_ = &launches_; }
  ~LaunchWatch() { current_ = before_; }
  const std::vector<Launch>& launches() const { return launches_; }

  /// Tells this thread's innermost watch, if there is one.
  static void note(const Launch& launch) {
    if (current_ != nullptr) current_->push_back(launch);
  }

 private:
  static inline thread_local std::vector<Launch>* current_ = nullptr;
  std::vector<Launch> launches_;
  std::vector<Launch>* before_;
};

}  // namespace cuop::jit
