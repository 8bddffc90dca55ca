// Kernels that are written as templates in kernel text: the source that names one instance of a
// template, and its launch.
#pragma once

#include <sstream>
#include <string>

#include "cuop/core/tensor.h"
#include "cuop/jit/nvrtc.h"

namespace cuop::jit {

/// `call` is an instance, as "softmax_rows<float, 4, 32, 1, false>", of a function of the kernel
/// text `path` that takes a const reference to the struct named `arguments`.
struct TextKernel {
  const char* title;  ///< for messages and listings
  const char* path;   ///< as #include names it
  const char* arguments;
  std::string call;
  int threads = 0;       ///< of a block, as the template expects
  int resident = 1;      ///< blocks that share a multiprocessor's registers at least
  int shared_bytes = 0;  ///< that the launch gives a block, beyond those that the text declares
};

/// All that the compiler needs but the architecture.
CompileRequest kernel_request(const TextKernel& kernel);

/// Starts up to `blocks` blocks on this thread's current stream of the device, each `pieces` times
/// along the grid's second axis; the kernel goes round again where blocks are fewer than asked for.
/// `arguments` points to the kernel's struct.
void launch_text(const TextKernel& kernel, Device device, int64_t blocks, const void* arguments,
                 int64_t pieces = 1);

/// The C++ type of a dtype's elements in kernel text.
const char* text_type(DType dtype);
/// The unsigned type of 1, 2, 4, 8 or 16 bytes there.
const char* word_type(int64_t bytes);

namespace detail {

inline const char* argument_text(bool value) { return value ? "true" : "false"; }
inline const char* argument_text(DType dtype) { return text_type(dtype); }
template <class T>
const T& argument_text(const T& value) {
  return value;
}

}  // namespace detail

/// The instance of a template, as "softmax_rows<float, 4, 32, 1, false>": dtypes stand for the
/// types of their elements, text for itself.
template <class First, class... Rest>
std::string instance(const char* name, const First& first, const Rest&... rest) {
  std::ostringstream out;
  out << name << '<' << detail::argument_text(first);
  ((out << ", " << detail::argument_text(rest)), ...);
  out << '>';
  return out.str();
}

}  // namespace cuop::jit
