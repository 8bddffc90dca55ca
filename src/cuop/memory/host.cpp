#include "cuop/memory/host.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "cuop/core/divide_up.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/memory/host_memory.h"

namespace cuop::memory {

namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

int64_t most_bytes() {
  static const int64_t bytes = host_memory().total;  // reads files
  return bytes;
}

}  // namespace

void* HostResource::allocate(int64_t bytes, Stream) {
  if (bytes == 0) return nullptr;
  void* data = nullptr;
  const int64_t limit = most_bytes();
  // Linux would promise more than it has and kill the process later; refuse what cannot fit.
  if (bytes > 0 && bytes <= limit) {
    const int64_t alignment = bytes >= 2 * kHugePage ? kHugePage : kAlignment;
    const int64_t rounded = round_up(bytes, alignment);
    data = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(rounded));
    if (data != nullptr && alignment == kHugePage) {
      madvise(data, static_cast<size_t>(rounded), MADV_HUGEPAGE);
    }
  }
  if (data == nullptr) {
    ++failures_;
    throw MemoryError(cat("memory: ", bytes, " bytes were asked of the host, which has ", limit,
                          " bytes; cuOP holds ", live_.load(), " bytes"),
                      {bytes, live_.load(), live_.load(), limit});
  }
  ++allocations_;
  const int64_t now = live_ += bytes;
  int64_t peak = peak_;
  while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
  }
  return data;
}

void HostResource::deallocate(void* data, int64_t bytes, Stream) noexcept {
  if (data == nullptr) return;
  std::free(data);
  live_ -= bytes;
  ++frees_;
}

Statistics HostResource::statistics() const {
  Statistics s;
  s.allocated_bytes = s.reserved_bytes = live_;
  s.peak_allocated_bytes = s.peak_active_bytes = s.peak_reserved_bytes = peak_;
  s.allocation_count = allocations_;
  s.free_count = frees_;
  s.out_of_memory_count = failures_;
  return s;
}

void HostResource::reset_peak() { peak_ = live_.load(); }

int64_t HostResource::release_cached() {
  const auto idle = [] { return static_cast<int64_t>(mallinfo2().fordblks); };
  const int64_t before = idle();
  malloc_trim(0);
  return std::max<int64_t>(0, before - idle());
}

}  // namespace cuop::memory
