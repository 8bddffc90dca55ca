// Loops of one thread that may take long, and that the user can interrupt (core/interrupt.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuop/core/interrupt.h"

namespace cuop {

/// Elements between two looks for an interrupt: hundreds of microseconds, beside which a look is
/// free.
inline constexpr int64_t kLoopPiece = int64_t{1} << 18;

/// work(begin, end) for pieces of [0, count) in order; throws Interrupted between them. `piece` is
/// for steps of more than an element.
template <class Work>
void in_pieces(int64_t count, Work&& work, int64_t piece = kLoopPiece) {
  for (int64_t begin = 0; begin < count; begin += piece) {
    if (begin > 0) check_interrupt();
    work(begin, std::min(count, begin + piece));
  }
}

/// The same of loops whose steps are of different size: each tells how much it did. In the
/// innermost loops it costs time.
class Lookout {
 public:
  /// After a step over so many elements.
  void after(int64_t elements) {
    left_ -= elements;
    if (left_ > 0) return;
    check_interrupt();
    left_ = kLoopPiece;
  }

 private:
  int64_t left_ = kLoopPiece;
};

}  // namespace cuop
