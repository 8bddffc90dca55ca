#include "cuop/memory/limited.h"

#include <list>
#include <mutex>

#include "cuop/core/byte_size.h"
#include "cuop/core/error.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/text.h"

namespace cuop::memory {
namespace {

/// Resources that their owners have left while bytes of them were live.
struct Left {
  ForkMutex mutex;
  std::list<std::unique_ptr<LimitedResource>> all;
};

Left& left() {
  static Left& list = *new Left;  // tensors may go when the process ends
  return list;
}

}  // namespace

void* LimitedResource::allocate(int64_t bytes, Stream stream) {
  const int64_t before = live_.fetch_add(bytes);
  if (bytes > limit_ - before) {
    live_ -= bytes;
    ++refused_;
    throw MemoryError(
        cat("no ", format_bytes(bytes), " more on ", device(), " for work that may use ",
            format_bytes(limit_), " and uses ", format_bytes(before)),
        {bytes, before, limit_, limit_ - before});
  }
  void* data = nullptr;
  try {
    data = upstream_.allocate(bytes, stream);
  } catch (...) {
    live_ -= bytes;
    throw;
  }
  int64_t peak = peak_;
  while (before + bytes > peak && !peak_.compare_exchange_weak(peak, before + bytes)) {
  }
  return data;
}

void LimitedResource::deallocate(void* data, int64_t bytes, Stream stream) noexcept {
  upstream_.deallocate(data, bytes, stream);
  live_ -= bytes;
}

Statistics LimitedResource::statistics() const {
  Statistics result = upstream_.statistics();
  result.allocated_bytes = live_;
  result.peak_allocated_bytes = peak_;
  result.capacity_bytes = limit_;
  result.out_of_memory_count = refused_;
  return result;
}

std::shared_ptr<LimitedResource> make_limited(Device device, int64_t limit) {
  {
    const std::lock_guard lock(left().mutex);
    left().all.remove_if([](const auto& resource) { return resource->live() == 0; });
  }
  return {new LimitedResource(current_resource(device), limit), [](LimitedResource* resource) {
            std::unique_ptr<LimitedResource> owned(resource);
            if (owned->live() == 0) return;
            const std::lock_guard lock(left().mutex);
            left().all.push_back(std::move(owned));
          }};
}

}  // namespace cuop::memory
