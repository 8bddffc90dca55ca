#include "cuop/backend/kernel.h"

#include <charconv>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::backend {

namespace {

constexpr KernelType kTypes[] = {KernelType::kAuto, KernelType::kSimple, KernelType::kTiled,
                                 KernelType::kTensorCore};

bool find_type(std::string_view text, KernelType& found) {
  for (const KernelType type : kTypes) {
    if (text != name(type)) continue;
    found = type;
    return true;
  }
  return false;
}

thread_local Kernel asked;

}  // namespace

const char* name(KernelType type) {
  switch (type) {
    case KernelType::kAuto:
      return "auto";
    case KernelType::kSimple:
      return "simple";
    case KernelType::kTiled:
      return "tiled";
    case KernelType::kTensorCore:
      return "tensor_core";
  }
  return "";
}

KernelType parse_kernel_type(std::string_view text) {
  KernelType type{};
  if (find_type(text, type)) return type;
  throw ExecutionError(
      cat("kernel_type: '", text, "' is unknown; known are auto, simple, tiled and tensor_core"));
}

std::string name(const Kernel& kernel) {
  return kernel.tile == 0 ? name(kernel.type) : cat(name(kernel.type), '/', kernel.tile);
}

bool parse_kernel(std::string_view text, Kernel& kernel) {
  const size_t slash = text.find('/');
  Kernel parsed;
  if (!find_type(text.substr(0, slash), parsed.type)) return false;
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), parsed.tile);
    if (error != std::errc() || end != digits.data() + digits.size() || parsed.tile < 1) {
      return false;
    }
  }
  kernel = parsed;
  return true;
}

const Kernel& asked_kernel() { return asked; }

KernelScope::KernelScope(const Kernel& kernel) : before_(asked) { asked = kernel; }
KernelScope::~KernelScope() { asked = before_; }

}  // namespace cuop::backend
