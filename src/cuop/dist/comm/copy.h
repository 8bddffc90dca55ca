// Plain copies between buffers of ranks that share an address space.
#pragma once

#include <cstdint>
#include <cstring>

namespace cuop::dist {

/// Nothing happens for no bytes (the pointers may be null then) or for the same address.
inline void copy_bytes(void* to, const void* from, int64_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, static_cast<size_t>(bytes));
}

inline const char* at(const void* base, int64_t offset) {
  return static_cast<const char*>(base) + offset;
}
inline char* at(void* base, int64_t offset) { return static_cast<char*>(base) + offset; }

}  // namespace cuop::dist
