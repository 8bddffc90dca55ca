#include "cuop/backend/cpu/blas_room.h"

#include <pthread.h>
#include <sys/mman.h>

#include <condition_variable>
#include <limits>
#include <mutex>

#include "cuop/core/byte_size.h"
#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"
#include "cuop/memory/host_memory.h"

namespace cuop::backend::blas {

namespace {

constexpr int64_t kBuffer = int64_t{128} << 20;
/// What else a thread may take in the meantime: an arena of the C library's allocator.
constexpr int64_t kMargin = int64_t{64} << 20;

struct Rooms {
  std::mutex mutex;
  std::condition_variable left;
  int inside = 0;
  int buffers = 0;   ///< that the library has or will take in a call that has begun
  int promised = 0;  ///< those of them that it may not have taken yet
};

Rooms*& rooms() {
  static auto* shared = [] {
    // A forked child has none of the threads that were inside, but their buffers.
    pthread_atfork(nullptr, nullptr, [] {
      const int buffers = rooms()->buffers - rooms()->promised;
      rooms() = new Rooms;
      rooms()->buffers = buffers;
    });
    return new Rooms;
  }();
  return shared;
}

bool has_room(int64_t bytes) {
  const auto size = static_cast<size_t>(bytes);
  void* const range =
      mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return false;
  munmap(range, size);
  return true;
}

[[noreturn]] void throw_too_few() {
  throw MemoryError(cat("BLAS: the library takes ", format_bytes(kBuffer),
                        " of addresses, and of the ", format_bytes(memory::address_space_limit()),
                        " that this process may have (ulimit -v) too few are left"));
}

}  // namespace

bool has_limited_addresses() {
  static const bool is_limited =
      memory::address_space_limit() != std::numeric_limits<int64_t>::max();
  return is_limited;
}

void check_room_to_open() {
  // The library itself and what it starts with besides.
  if (has_limited_addresses() && !has_room(kBuffer + 2 * kMargin)) throw_too_few();
}

bool BufferRoom::enter() {
  Rooms& shared = *rooms();
  std::unique_lock lock(shared.mutex);
  bool is_new = false;
  const auto has_place = [&] {
    if (shared.inside < shared.buffers) return true;
    is_new = has_room((shared.promised + 1) * kBuffer + kMargin);
    if (!is_new && shared.inside == 0) throw_too_few();
    return is_new;
  };
  wait_interruptibly(shared.left, lock, std::chrono::steady_clock::time_point::max(), has_place);
  ++shared.inside;
  shared.buffers += is_new ? 1 : 0;
  shared.promised += is_new ? 1 : 0;
  return is_new;
}

void BufferRoom::leave(bool is_new) {
  Rooms& shared = *rooms();
  {
    const std::lock_guard lock(shared.mutex);
    --shared.inside;
    shared.promised -= is_new ? 1 : 0;
  }
  shared.left.notify_all();
}

}  // namespace cuop::backend::blas
