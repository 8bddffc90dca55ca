// What a kernel of the user's own takes, read from its source.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuop/core/dtype.h"

namespace cuop::jit {

struct KernelParameter {
  std::string name;
  std::string type;              ///< as written, without const: "float", "unsigned long long"
  bool is_pointer = false;       ///< takes a tensor; everything else a number
  bool is_written = false;       ///< a pointer to what is not const
  std::optional<DType> dtype{};  ///< none for void*, which takes any tensor
};

/// The parameters of the function `name`, which the source must declare as
/// `extern "C" __global__ void name(...)`. Types are CUDA C++'s arithmetic types, the fixed-width
/// names, Half, BFloat16 and Complex<...> of the kernel text, and pointers to them; `macros` are
/// replaced first. CompilationError that names what is missing or not understood.
std::vector<KernelParameter> parse_signature(std::string_view source, const std::string& name,
                                             const std::map<std::string, std::string>& macros);

}  // namespace cuop::jit
