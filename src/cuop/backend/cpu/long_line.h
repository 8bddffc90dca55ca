// A line of elements inside of parallel work, or beside it.
#pragma once

#include <cstdint>
#include <functional>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/long_loop.h"

namespace cuop::backend {

/// body(0, count) of a line whose elements can be worked on in any order; one that takes long comes
/// in pieces, which the user can interrupt and other threads take where they have nothing to do.
template <class Body>
void over_line(int64_t count, const Body& body) {
  if (count <= kLoopPiece) return body(int64_t{0}, count);
  parallel_for(count, kLoopPiece / 4, std::cref(body));
}

}  // namespace cuop::backend
