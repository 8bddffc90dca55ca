// The names of the operations that a GPU was given last, for messages about its errors.
#pragma once

#include <string>

namespace cuop::backend::cuda {

/// `name` is a text that outlives the process's use of CUDA, such as a literal. Any thread.
void note_started(const char* name);
/// The operations that were started last by any thread, the newest first: "add, softmax, copy"; ""
/// when there were none.
std::string recently_started();

}  // namespace cuop::backend::cuda
