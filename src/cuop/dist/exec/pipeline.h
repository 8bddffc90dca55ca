// Three stages for each of several chunks: it is brought here, worked on, and taken away. While one
// is worked on, the next ones are on their way here and the one before is on its way out.
//
//   moves   bring 0 | bring 1 |         | take 0, bring 2 | take 1 |        | take 2
//   work            | work 0            | work 1                   | work 2
//
// On a GPU moves have a stream of their own; on the host the work has a thread, and moves stay with
// the caller, who alone may use the communicator. Moves that use none may go both ways at a time,
// each as fast as it can.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cuop/core/tensor.h"

namespace cuop::dist {

struct Stages {
  std::function<void(int64_t chunk)> bring;
  std::function<void(int64_t chunk)> work;
  std::function<void(int64_t chunk)> take;
};

struct Overlap {
  bool is_on = true;  ///< false: one stage after the other
  int64_t ahead = 1;  ///< chunks that are brought before they are worked on, at least 1
  /// On a GPU chunks are brought and worked on by another thread, and taken away by this one, one
  /// chunk ahead.
  bool is_two_way = false;
  /// On a GPU the moves and this rank's work have nothing to do with each other, as on a rank that
  /// has all there is at first and keeps the result: neither waits for the other.
  bool is_apart = false;
};

/// Runs the stages of all chunks in order. `tensors` are what several stages use; they lie on
/// `device`.
void run_pipeline(Device device, int64_t chunks, const Stages& stages, const Overlap& overlap,
                  const std::vector<Tensor>& tensors);

}  // namespace cuop::dist
