// CUDA source as source for the host's compiler.
#pragma once

#include <string>

namespace cuop::simulator {

/// The few PTX instructions that kernel text writes out, as calls of kernel_frame.h. Others are
/// left for the compiler to refuse.
std::string without_ptx(const std::string& text);

/// The source with the frame before it and, behind it, the table entry of each kernel in it.
std::string framed(const std::string& source, const std::string& name);

}  // namespace cuop::simulator
