// The memory of a captured graph. Its addresses are part of the recording, so nobody else may get
// them while the graph can be replayed.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "cuop/backend/device_runtime.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/memory/resource.h"

namespace cuop::backend::cuda {

/// Blocks of the device's resource, used again within the graph in the order of the stream that
/// freed them; those that further streams use are not. It lives until the graph has left it and the
/// last tensor in it is gone; then the blocks go back.
class GraphMemory final : public memory::MemoryResource {
 public:
  GraphMemory(memory::MemoryResource& upstream, Runtime& runtime);
  /// The graph, whose replays were ordered on `last`, needs the memory no more; do not use the
  /// pointer after this.
  void leave(Stream last) noexcept;

  void* allocate(int64_t bytes, Stream stream) override;
  void deallocate(void* data, int64_t bytes, Stream stream) noexcept override;
  /// Of other blocks too: they are the device's, which hears of it as well.
  void record_stream(void* data, Stream stream) override;
  memory::Statistics statistics() const override;
  void reset_peak() override;
  int64_t release_cached() override { return 0; }
  Device device() const override { return upstream_.device(); }

 private:
  struct Block {
    void* data = nullptr;
    int64_t bytes = 0;
  };
  struct Live {
    int64_t bytes = 0;
    Stream stream;
    bool is_shared = false;  ///< with another stream
  };
  ~GraphMemory() override;
  /// The block is live from now on; the lock is held.
  void enter(const Block& block, Stream stream);
  void delete_when_unused(std::unique_lock<ForkMutex>& lock) noexcept;

  memory::MemoryResource& upstream_;
  Runtime& runtime_;
  const Stream side_;  ///< orders the blocks upstream; work of the graph never runs there
  mutable ForkMutex mutex_;
  std::vector<Block> blocks_;
  std::map<void*, std::multimap<int64_t, void*>> idle_;  ///< by the stream that freed them
  std::map<void*, Live> live_;
  int64_t live_bytes_ = 0, peak_bytes_ = 0, allocations_ = 0, frees_ = 0;
  bool is_left_ = false;

  friend memory::MemoryResource& memory_of_capture(memory::MemoryResource& upstream,
                                                   Runtime& runtime, Stream stream,
                                                   uint64_t capture);
};

/// The memory of what another library records of a stream, over the device's resource. That library
/// says nobody when its graph is gone, so it is kept until the process ends.
memory::MemoryResource& memory_of_capture(memory::MemoryResource& upstream, Runtime& runtime,
                                          Stream stream, uint64_t capture);

}  // namespace cuop::backend::cuda
