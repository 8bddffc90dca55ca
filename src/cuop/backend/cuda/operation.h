// Errors of a GPU arrive later than they were caused. Every start of work is noted
// (recent_operations.h), and in blocking mode an error is raised by its own cause.
// The time that the work takes is marked for those who listen (core/trace.h).
#pragma once

#include "cuop/core/trace.h"

namespace cuop::backend::cuda {

/// Stands around each start of work on a stream.
class Operation {
 public:
  /// `name` is a text that outlives the process's use of CUDA, such as a literal.
  Operation(const char* name, Stream stream) : name_(name), stream_(stream), work_(name, stream) {}
  /// To be called when the work has been started. With CUOP_CUDA_BLOCKING=1 waits for the stream
  /// and raises the operation's error.
  void started();

 private:
  const char* name_;
  Stream stream_;
  trace::Work work_;
};

/// While on, `started` waits for its stream, unless that is captured, as CUOP_CUDA_BLOCKING=1 says
/// for a process.
void set_blocking(bool is_on);

}  // namespace cuop::backend::cuda
