// Copies of many bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace cuop {

/// `bytes` from one place to another; the places do not overlap. From some 2 KiB on C libraries
/// copy by an instruction that processors of AMD (seen on Zen 4) are 20 times slower at where the
/// destination, modulo 4 KiB, begins less than 64 bytes behind the source: rows of arrays that
/// begin on pages, moved by a few elements. There the copy is made of pieces that are too short for
/// it.
inline void copy_bytes(void* to, const void* from, int64_t bytes) {
  constexpr uintptr_t kPage = 4096, kNear = 64;
  constexpr int64_t kPiece = 1024;
  const auto behind = (reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from)) % kPage;
  if (bytes <= kPiece || behind == 0 || behind >= kNear) {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  auto* const target = static_cast<char*>(to);
  const auto* const source = static_cast<const char*>(from);
  for (int64_t done = 0; done < bytes; done += kPiece) {
    auto size = static_cast<size_t>(std::min(kPiece, bytes - done));
    asm("" : "+r"(size));  // compilers that know how short it is use that instruction themselves
    std::memcpy(target + done, source + done, size);
  }
}

/// The same by stores that pass the caches: of many bytes that nobody reads soon. Others read a
/// line of the destination before they write it, and drive out of the caches what is needed there.
void copy_bytes_past_caches(void* to, const void* from, int64_t bytes);

}  // namespace cuop
