// oneDNN on the CPU, found at run time. float32 only; tensors are row-major, the library's own
// formats stay inside.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cuop/backend/cpu/dnn_abi.h"

namespace cuop::backend::dnn {

struct Info {
  bool is_available = false;
  std::string version;  ///< of the library, with its kind of threads
  std::string path;     ///< the module through which it is called
  std::string reason;   ///< why there is none, and what to install
};
/// Looks for the library on first use; never throws.
const Info& info();

/// y <- convolution of x with w plus bias (null without one) on thread_count() threads, on one
/// where others cannot be started; the problem's `threads` is filled in here. Prepared primitives
/// are kept for the next call of the same sizes. DeviceError without the library, ExecutionError
/// with its reason when it refuses.
void conv(CuopDnnConv problem, const float* x, const float* w, const float* bias, float* y,
          void* kept = nullptr);

/// A place for the library's forms of weights that do not change; several threads may use it.
std::shared_ptr<void> new_weights();

/// Frees the memory of prepared primitives that no call is using; returns its bytes. Does not look
/// for the library when nothing has used it yet.
int64_t release();

}  // namespace cuop::backend::dnn
