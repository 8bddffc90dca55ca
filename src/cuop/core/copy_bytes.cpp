#include "cuop/core/copy_bytes.h"

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace cuop {

void copy_bytes_past_caches(void* to, const void* from, int64_t bytes) {
#ifdef __SSE2__
  constexpr int64_t kLine = 64;
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  const auto offset = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % kLine);
  const int64_t head = std::min(bytes, (kLine - offset) % kLine);
  copy_bytes(target, source, head);
  int64_t done = head;
  for (; done + kLine <= bytes; done += kLine) {
    const auto* const line = reinterpret_cast<const __m128i*>(source + done);
    auto* const place = reinterpret_cast<__m128i*>(target + done);
    const __m128i first = _mm_loadu_si128(line), second = _mm_loadu_si128(line + 1),
                  third = _mm_loadu_si128(line + 2), fourth = _mm_loadu_si128(line + 3);
    _mm_stream_si128(place, first);
    _mm_stream_si128(place + 1, second);
    _mm_stream_si128(place + 2, third);
    _mm_stream_si128(place + 3, fourth);
  }
  _mm_sfence();  // before whoever is told that the bytes are there
  copy_bytes(target + done, source + done, bytes - done);
#else
  copy_bytes(to, from, bytes);
#endif
}

}  // namespace cuop
