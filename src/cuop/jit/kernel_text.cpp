#include "cuop/jit/kernel_text.h"

#include <algorithm>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::jit {

namespace {

const KernelText& find_text(std::string_view name) {
  const auto texts = kernel_texts();
  const auto found = std::find_if(texts.begin(), texts.end(),
                                  [&](const KernelText& text) { return text.name == name; });
  if (found == texts.end()) {
    throw CompilationError(cat("jit: a kernel includes \"", name, "\", which is no kernel text"));
  }
  return *found;
}

void add_includes(std::string_view source, std::vector<const KernelText*>& found) {
  constexpr std::string_view kInclude = "#include \"";
  for (size_t at = source.find(kInclude); at != std::string_view::npos;
       at = source.find(kInclude, at)) {
    at += kInclude.size();
    const KernelText* text = &find_text(source.substr(at, source.find('"', at) - at));
    if (std::find(found.begin(), found.end(), text) != found.end()) continue;
    found.push_back(text);
    add_includes(text->text, found);
  }
}

}  // namespace

std::vector<const KernelText*> included_texts(std::string_view source) {
  std::vector<const KernelText*> found;
  add_includes(source, found);
  return found;
}

const KernelText& text_defining(std::string_view type) {
  const std::string definition = cat("struct ", type.substr(type.rfind(':') + 1), " : ");
  for (const KernelText& text : kernel_texts()) {
    if (std::string_view(text.text).find(definition) != std::string_view::npos) return text;
  }
  throw CompilationError(cat("jit: no kernel text defines ", type));
}

std::string without_unrolling(std::string_view text) {
  constexpr std::string_view kUnroll = "#pragma unroll";
  std::string result;
  size_t from = 0;
  for (size_t at = text.find(kUnroll); at != std::string_view::npos;
       at = text.find(kUnroll, from)) {
    result += text.substr(from, at - from);
    result += "#pragma unroll 1";
    from = std::min(text.find('\n', at), text.size());
  }
  return result += text.substr(from);
}

}  // namespace cuop::jit
