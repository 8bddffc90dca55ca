// Errors of a GPU arrive later than they were caused. Every start of work is noted here, so that a
// message can say what was started last, and in blocking mode an error is raised by its own cause.
#pragma once

#include <string>

#include "cuop/backend/cuda/driver_types.h"

namespace cuop::backend::cuda {

/// To be called after each start of work on a stream; `operation` is a text that outlives the
/// process's use of CUDA, such as a literal. With CUOP_CUDA_BLOCKING=1 waits for the stream and
/// raises the operation's error.
void note_started(const char* operation, StreamHandle stream);
/// The operations that were started last by any thread, the newest first: "add, softmax, copy"; ""
/// when there were none.
std::string recently_started();

}  // namespace cuop::backend::cuda
