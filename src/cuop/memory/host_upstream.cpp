#include "cuop/memory/host_upstream.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "cuop/core/divide_up.h"

namespace cuop::memory {

void* MappedHostUpstream::acquire(int64_t bytes) {
  // mmap aligns to pages; the parts outside the aligned range go back at once.
  const size_t size = static_cast<size_t>(bytes), unit = static_cast<size_t>(granule());
  void* const mapped =
      mmap(nullptr, size + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const auto start = reinterpret_cast<uintptr_t>(mapped);
  const uintptr_t aligned = round_up(start, unit);
  if (aligned > start) munmap(mapped, aligned - start);
  munmap(reinterpret_cast<void*>(aligned + size), start + unit - aligned);
  return reinterpret_cast<void*>(aligned);
}

void MappedHostUpstream::release(void* range, int64_t bytes) noexcept {
  munmap(range, static_cast<size_t>(bytes));
}

bool MappedHostUpstream::map(void* address, int64_t bytes, int64_t) {
  // Linux would promise more than it has and kill the process later; refuse what cannot fit.
  if (bytes > total_) return false;
  if (mprotect(address, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE) != 0) return false;
  madvise(address, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return true;
}

void MappedHostUpstream::unmap(void* address, int64_t bytes, int64_t) noexcept {
  madvise(address, static_cast<size_t>(bytes), MADV_DONTNEED);
  mprotect(address, static_cast<size_t>(bytes), PROT_NONE);
}

void* PlainHostUpstream::acquire(int64_t bytes) {
  if (bytes > total_) return nullptr;
  return std::aligned_alloc(static_cast<size_t>(granule()), static_cast<size_t>(bytes));
}

void PlainHostUpstream::release(void* range, int64_t) noexcept { std::free(range); }

}  // namespace cuop::memory
