#include "cuop/backend/kernel.h"

#include <charconv>
#include <iterator>

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

constexpr std::string_view kBulk = "+bulk", kNotShared = "-shared", kNotCoalesced = "-coalesced";

/// Removes the end of the text where it is `end`, and tells whether it was.
bool cut_end(std::string_view& text, std::string_view end) {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
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
  std::string text = name(kernel.type);
  const int64_t numbers[] = {kernel.tile, kernel.threads, kernel.stages};
  size_t count = std::size(numbers);
  while (count > 0 && numbers[count - 1] == 0) --count;
  for (size_t i = 0; i < count; ++i) text += cat('/', numbers[i]);
  if (kernel.is_bulk) text += kBulk;
  if (!kernel.in_shared) text += kNotShared;
  if (!kernel.is_coalesced) text += kNotCoalesced;
  return text;
}

bool parse_kernel(std::string_view text, Kernel& kernel) {
  const std::string whole(text);
  Kernel parsed;
  parsed.is_coalesced = !cut_end(text, kNotCoalesced);
  parsed.in_shared = !cut_end(text, kNotShared);
  parsed.is_bulk = cut_end(text, kBulk);
  size_t slash = text.find('/');
  if (!find_type(text.substr(0, slash), parsed.type)) return false;
  for (int64_t* number : {&parsed.tile, &parsed.threads, &parsed.stages}) {
    if (slash == std::string_view::npos) break;
    text.remove_prefix(slash + 1);
    slash = text.find('/');
    const std::string_view digits = text.substr(0, slash);
    const char* const last = digits.data() + digits.size();
    const auto [end, error] = std::from_chars(digits.data(), last, *number);
    if (error != std::errc() || end != last || *number < 0) return false;
  }
  if (name(parsed) != whole) return false;  // zeros at the end, numbers too many, other spellings
  kernel = parsed;
  return true;
}

const Kernel& asked_kernel() { return asked; }

KernelScope::KernelScope(const Kernel& kernel) : before_(asked) { asked = kernel; }
KernelScope::~KernelScope() { asked = before_; }

}  // namespace cuop::backend
