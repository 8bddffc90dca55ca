#include "cuop/memory/host.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "cuop/core/byte_size.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/memory/host_memory.h"
#include "cuop/memory/host_upstream.h"
#include "cuop/memory/pool.h"

namespace cuop::memory {

namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

int64_t most_bytes() {
  static const int64_t bytes = host_memory().total;  // reads files
  return bytes;
}

// The address sanitizer sees blocks of the C library only.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kIsAddressSanitized = true;
#else
constexpr bool kIsAddressSanitized = false;
#endif

constexpr int64_t kCachedPart =
    8;  ///< of the machine's memory, at most one in so many bytes is idle

/// Where the process's addresses are limited, one in so many bytes is taken at once.
constexpr int64_t kReservedPart = 32;

MemoryResource* make_resource() {
  const auto& choice = env().host_allocator;
  const bool is_pool = choice.value == "pool";
  if (!is_pool && choice.value != "system") {
    throw ExecutionError(
        cat("CUOP_HOST_ALLOCATOR: '", choice.value, "' is unknown; give pool or system"));
  }
  if (!is_pool || (kIsAddressSanitized && !choice.is_set)) return new HostResource;
  MemoryPoolOptions options;
  const std::string& cache = env().host_cache_size.value;
  options.cache_bytes = cache.empty() ? host_memory().total / kCachedPart
                                      : parse_bytes(cache, "CUOP_HOST_CACHE_SIZE");
  const int64_t addresses = address_space_limit();
  if (addresses != std::numeric_limits<int64_t>::max()) {
    options.segment_bytes = addresses / kReservedPart;
  }
  return new Pool(*new MappedHostUpstream, *new ImmediateOrder, options);
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
                          " bytes; cuOP holds ", usage_.live(), " bytes"),
                      {bytes, usage_.live(), usage_.live(), limit});
  }
  ++allocations_;
  usage_.add(bytes, bytes);
  return data;
}

void HostResource::deallocate(void* data, int64_t bytes, Stream) noexcept {
  if (data == nullptr) return;
  std::free(data);
  usage_.add(-bytes, 0);
  ++frees_;
}

Statistics HostResource::statistics() const {
  Statistics s;
  s.allocated_bytes = s.reserved_bytes = usage_.live();
  s.peak_allocated_bytes = s.peak_active_bytes = s.peak_reserved_bytes = usage_.peak();
  s.allocation_count = allocations_;
  s.free_count = frees_;
  s.out_of_memory_count = failures_;
  return s;
}

void HostResource::reset_peak() { usage_.reset_peak(); }

int64_t HostResource::release_cached() {
  const auto idle = [] { return static_cast<int64_t>(mallinfo2().fordblks); };
  const int64_t before = idle();
  malloc_trim(0);
  return std::max<int64_t>(0, before - idle());
}

MemoryResource& default_host_resource() {
  static MemoryResource* instance = make_resource();
  return *instance;
}

}  // namespace cuop::memory
