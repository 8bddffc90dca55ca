// Elements as words: work that only moves them knows their width and nothing else.
#pragma once

#include <cstdint>

namespace cuop {

struct Word16 {
  uint64_t half[2];
};

/// Calls f with a word of so many bytes, an element of any dtype: 1, 2, 4, 8 or 16.
template <class F>
void with_word(int64_t bytes, const F& f) {
  switch (bytes) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
    default:
      return f(Word16{});
  }
}

}  // namespace cuop
