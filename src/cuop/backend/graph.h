// Work of a device recorded once and started again by one call.
#pragma once

#include <cstdint>

#include "cuop/core/stream.h"

namespace cuop::backend {

class Graph {
 public:
  virtual ~Graph() = default;
  /// From here to end() what this thread asks of the device is recorded and not done: a stream of
  /// the graph is current, and new tensors lie in memory that the graph keeps. ExecutionError when
  /// the graph was captured before.
  virtual void begin() = 0;
  /// Ends the recording and makes it ready to run; the graph is empty again after an error.
  virtual void end() = 0;
  /// Ends the recording and forgets it.
  virtual void abandon() noexcept = 0;
  /// Does the recorded work on the stream, reading and writing the memory that was there when it
  /// was recorded: the caller keeps the tensors of it alive.
  virtual void replay(Stream stream) = 0;
  /// Kernels, copies and fills that were recorded.
  virtual int64_t node_count() const = 0;
};

}  // namespace cuop::backend
