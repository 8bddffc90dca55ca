#include "cuop/backend/cuda/graph_memory.h"

#include <algorithm>
#include <memory>
#include <tuple>

#include "cuop/backend/cuda/capture.h"
#include "cuop/core/error.h"

namespace cuop::backend::cuda {

GraphMemory::GraphMemory(memory::MemoryResource& upstream, Runtime& runtime)
    : upstream_(upstream), runtime_(runtime), side_(runtime.create_stream()) {}

GraphMemory::~GraphMemory() {
  for (const Block& block : blocks_) upstream_.deallocate(block.data, block.bytes, side_);
  runtime_.destroy_stream(side_);
}

void* GraphMemory::allocate(int64_t bytes, Stream stream) {
  if (bytes == 0) return nullptr;
  {
    const std::lock_guard lock(mutex_);
    auto& idle = idle_[stream.handle];
    const auto place = idle.lower_bound(bytes);
    if (place != idle.end() && place->first <= 2 * bytes) {
      const auto [size, data] = *place;
      enter({data, size}, stream);
      idle.erase(place);
      return data;
    }
  }
  // Without the lock: the device takes its time, and a callback may ask for figures or free.
  const Block block{upstream_.allocate(bytes, side_), bytes};
  try {
    // What the block was before is over when the graph is replayed, on whatever stream.
    const RelaxedCapture outside;
    runtime_.synchronize(side_);
    const std::lock_guard lock(mutex_);
    blocks_.reserve(blocks_.size() + 1);
    enter(block, stream);
    blocks_.push_back(block);
  } catch (...) {
    upstream_.deallocate(block.data, block.bytes, side_);
    throw;
  }
  return block.data;
}

void GraphMemory::enter(const Block& block, Stream stream) {
  live_.emplace(block.data, Live{block.bytes, stream});
  ++allocations_;
  live_bytes_ += block.bytes;
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
}

void GraphMemory::deallocate(void* data, int64_t, Stream stream) noexcept {
  if (data == nullptr) return;
  std::unique_lock lock(mutex_);
  auto node = live_.extract(data);
  if (node.empty()) return;
  const Live& block = node.mapped();
  live_bytes_ -= block.bytes;
  ++frees_;
  // What comes after the work of all its streams nobody can tell while they are recorded.
  if (!block.is_shared) idle_[stream.handle].emplace(block.bytes, data);
  delete_when_unused(lock);
}

void GraphMemory::record_stream(void* data, Stream stream) {
  {
    const std::lock_guard lock(mutex_);
    const auto block = live_.find(data);
    if (block != live_.end() && !(block->second.stream == stream)) block->second.is_shared = true;
  }
  upstream_.record_stream(data, stream);
}

void GraphMemory::leave(Stream last) noexcept {
  try {
    runtime_.order(side_, last);
  } catch (const Error&) {
    // The device is lost or the process is ending: nothing runs there any more.
  }
  std::unique_lock lock(mutex_);
  is_left_ = true;
  delete_when_unused(lock);
}

void GraphMemory::delete_when_unused(std::unique_lock<ForkMutex>& lock) noexcept {
  const bool is_unused = is_left_ && live_.empty();
  lock.unlock();
  if (is_unused) delete this;
}

memory::Statistics GraphMemory::statistics() const {
  const std::lock_guard lock(mutex_);
  memory::Statistics s;
  s.allocated_bytes = live_bytes_;
  s.peak_allocated_bytes = s.peak_active_bytes = peak_bytes_;
  for (const Block& block : blocks_) s.reserved_bytes += block.bytes;
  s.peak_reserved_bytes = s.reserved_bytes;  // none goes back before the graph does
  s.cached_bytes = s.reserved_bytes - s.allocated_bytes;
  s.allocation_count = allocations_;
  s.free_count = frees_;
  return s;
}

void GraphMemory::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_bytes_ = live_bytes_;
}

memory::MemoryResource& memory_of_capture(memory::MemoryResource& upstream, Runtime& runtime,
                                          Stream stream, uint64_t capture) {
  static auto& mutex = *new ForkMutex;
  static auto* const all = new std::map<std::tuple<int, void*, uint64_t>, GraphMemory*>;
  const std::tuple key{stream.device.index, stream.handle, capture};
  {
    const std::lock_guard lock(mutex);
    const auto known = all->find(key);
    if (known != all->end()) return *known->second;
  }
  const RelaxedCapture outside;
  struct Destroy {
    void operator()(GraphMemory* unused) const { delete unused; }
  };
  std::unique_ptr<GraphMemory, Destroy> made(new GraphMemory(upstream, runtime));
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = all->emplace(key, made.get());
  if (is_new) made.release();  // else another thread was first
  return *entry->second;
}

}  // namespace cuop::backend::cuda
