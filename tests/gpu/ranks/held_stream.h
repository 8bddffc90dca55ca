// A stream whose later work does not begin before the test says so.
#pragma once

#include <memory>
#include <new>

#include "cuop/backend/cuda/stream_flags.h"
#include "cuop/memory/shared_memory.h"

namespace cuop::dist::rank_test {

class HeldStream {
 public:
  explicit HeldStream(Stream stream) : flags_(stream.device, memory_->data(), kBytes) {
    new (memory_->data()) backend::cuda::Flag(0);
    flags_.await(flag(), 1, stream);
  }
  /// May be called by any thread.
  void let_go() { flag() = 1; }

 private:
  static constexpr int64_t kBytes = 4096;
  backend::cuda::Flag& flag() const { return *static_cast<backend::cuda::Flag*>(memory_->data()); }

  std::shared_ptr<memory::SharedMemory> memory_ = memory::SharedMemory::create(kBytes);
  backend::cuda::FlagMemory flags_;
};

}  // namespace cuop::dist::rank_test
