// The text of the kernels, part of the library: the headers of what is compiled at run time.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cuop::jit {

struct KernelText {
  const char* name;    ///< as #include names it: "cuop/jit/kernels/prelude.h"
  const char* sha256;  ///< of the text
  const char* text;
};

/// All of them, as they were when the library was built.
std::span<const KernelText> kernel_texts();

/// Those that `source` includes, directly or through one another, each once. CompilationError for
/// an include that is none of them.
std::vector<const KernelText*> included_texts(std::string_view source);

/// The text with "#pragma unroll 1" in the place of every other factor.
std::string without_unrolling(std::string_view text);

/// The text that defines the type, given as "cuop::jit::fn::Add"; CompilationError when none does.
const KernelText& text_defining(std::string_view type);

}  // namespace cuop::jit
