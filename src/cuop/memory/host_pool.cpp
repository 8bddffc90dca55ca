#include "cuop/memory/host_pool.h"

#include <limits>

#include "cuop/core/byte_size.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/memory/host.h"
#include "cuop/memory/host_upstream.h"
#include "cuop/memory/pool.h"

namespace cuop::memory {

namespace {

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
  PoolOptions options;
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

MemoryResource& default_host_resource() {
  static MemoryResource* instance = make_resource();
  return *instance;
}

}  // namespace cuop::memory
