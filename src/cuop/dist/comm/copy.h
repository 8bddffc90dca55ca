// Plain copies between buffers of ranks that share an address space.
#pragma once

#include <cstdint>
#include <cstring>

#include "cuop/core/copy_bytes.h"

namespace cuop::dist {

inline bool overlaps(const void* a, int64_t a_bytes, const void* b, int64_t b_bytes) {
  const auto a_begin = reinterpret_cast<uintptr_t>(a);
  const auto b_begin = reinterpret_cast<uintptr_t>(b);
  return a_begin < b_begin + static_cast<uintptr_t>(b_bytes) &&
         b_begin < a_begin + static_cast<uintptr_t>(a_bytes);
}

/// Nothing happens for no bytes (the pointers may be null then) or for the same address.
inline void copy_bytes(void* to, const void* from, int64_t bytes) {
  if (bytes <= 0 || to == from) return;
  if (overlaps(to, bytes, from, bytes)) {
    std::memmove(to, from, static_cast<size_t>(bytes));
  } else {
    cuop::copy_bytes(to, from, bytes);
  }
}

inline const char* at(const void* base, int64_t offset) {
  return static_cast<const char*>(base) + offset;
}
inline char* at(void* base, int64_t offset) { return static_cast<char*>(base) + offset; }

}  // namespace cuop::dist
