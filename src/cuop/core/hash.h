// Digests: of text, for keys, checksums against accidents and comparisons between ranks; of
// numbers, for tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

/// Of whole numbers; quicker, and good within a process only.
template <class... Number>
size_t hash_numbers(Number... numbers) {
  const int64_t all[] = {static_cast<int64_t>(numbers)...};
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(all), sizeof all});
}

}  // namespace cuop
