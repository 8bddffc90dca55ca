// A 64-bit digest of text, for keys, checksums against accidents and comparisons between ranks.
#pragma once

#include <cstdint>
#include <string_view>

namespace cuop {

/// FNV-1a (Fowler, Noll, Vo): the same on every machine and in every version.
constexpr uint64_t hash_text(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return hash;
}

}  // namespace cuop
