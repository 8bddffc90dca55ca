// How the lines of a tile come to scratch memory and go back. Lines that lie across memory are read
// and written one cache line of each row at a time; rows far apart are beyond what a processor
// fetches ahead by itself, so they are asked for.
#pragma once

#include <cstdint>

#include "cuop/core/copy_bytes.h"

namespace cuop::spectral {

inline constexpr int64_t kCacheLine = 64;  ///< bytes

/// Elements from one line to the next, and from one element to the next.
struct Steps {
  int64_t line = 0;
  int64_t element = 1;
};

/// Asks for the ends of a row of `lines` elements: it is on one or two cache lines.
template <bool kIsWritten, class Word>
void fetch_row(const Word* row, int64_t lines, int64_t step) {
  __builtin_prefetch(row, kIsWritten);
  __builtin_prefetch(row + (lines - 1) * step, kIsWritten);
}

/// `lines` lines side by side, `count` elements of each. Lines of scratch are contiguous.
template <class Word>
void copy_tile(int64_t lines, int64_t count, const Word* from, Steps in, Word* to, Steps out) {
  if (in.element == 1 && out.element == 1) {
    for (int64_t l = 0; l < lines; ++l) {
      copy_bytes(to + l * out.line, from + l * in.line, count * static_cast<int64_t>(sizeof(Word)));
    }
    return;
  }
  constexpr auto kWord = static_cast<int64_t>(sizeof(Word));
  constexpr int64_t kRun = kWord < 8 ? kCacheLine / kWord : 8;  // rows that are copied at a time
  constexpr int64_t kAhead = 16;                                // rows
  const auto copy_run = [&](int64_t j, int64_t length) {
    if (out.element == 1) {
      for (int64_t l = 0; l < lines; ++l) {
        const Word* const column = from + l * in.line + j * in.element;
        Word* const line = to + l * out.line + j;
        for (int64_t i = 0; i < length; ++i) line[i] = column[i * in.element];
      }
    } else {
      for (int64_t i = 0; i < length; ++i) {
        const Word* const column = from + (j + i) * in.element;
        Word* const row = to + (j + i) * out.element;
        for (int64_t l = 0; l < lines; ++l) row[l * out.line] = column[l * in.line];
      }
    }
  };
  const auto fetch_run = [&](int64_t j) {
    for (int64_t i = 0; i < kRun && j + i < count; ++i) {
      if (out.element == 1) {
        fetch_row<false>(from + (j + i) * in.element, lines, in.line);
      } else {
        fetch_row<true>(to + (j + i) * out.element, lines, out.line);
      }
    }
  };
  int64_t j = 0;
  for (; j + kRun <= count; j += kRun) {
    fetch_run(j + kAhead);
    copy_run(j, kRun);
  }
  copy_run(j, count - j);
}

}  // namespace cuop::spectral
