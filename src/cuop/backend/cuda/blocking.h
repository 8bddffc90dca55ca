// Whether every start of work on a GPU is waited for, as CUOP_CUDA_BLOCKING=1 says for a process.
#pragma once

namespace cuop::backend::cuda {

/// While on, Operation::started waits for its stream, unless that is captured, and raises the
/// error of the work itself.
void set_blocking(bool is_on);

}  // namespace cuop::backend::cuda
