#include "cuop/backend/kernel.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "cuop/core/enum_names.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::backend {

namespace {

constexpr const char* kTypeNames[] = {"auto", "simple", "tiled", "tensor_core"};

constexpr std::string_view kBulk = "+bulk", kNotShared = "-shared", kNotCoalesced = "-coalesced";

/// Removes the end of the text where it is `end`, and tells whether it was.
bool cut_end(std::string_view& text, std::string_view end) {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

constexpr std::pair<std::string_view, int KernelShape::*> kShapeFields[] = {
    {"block", &KernelShape::threads},
    {"access", &KernelShape::access_bytes},
    {"team", &KernelShape::team},
    {"each", &KernelShape::each}};

/// True for a whole number of 0 or more.
template <class T>
bool parse_number(std::string_view digits, T& number) {
  T parsed = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), parsed);
  if (error != std::errc() || end != digits.data() + digits.size() || parsed < 0) return false;
  number = parsed;
  return true;
}

}  // namespace

const char* name(KernelType type) { return kTypeNames[static_cast<size_t>(type)]; }

KernelType parse_kernel_type(std::string_view text) {
  return parse_name<KernelType>("kernel_type:", kTypeNames, text);
}

std::string text_of(const KernelShape& shape) {
  std::string text;
  for (const auto& [field, member] : kShapeFields) {
    if (shape.*member != 0) text += cat('/', field, '=', shape.*member);
  }
  return text;
}

std::string name(const Kernel& kernel) {
  std::string text = name(kernel.type);
  const int64_t numbers[] = {kernel.tile, kernel.threads, kernel.stages};
  size_t count = std::size(numbers);
  while (count > 0 && numbers[count - 1] == 0) --count;
  for (size_t i = 0; i < count; ++i) text += cat('/', numbers[i]);
  text += text_of(kernel.shape);
  if (kernel.is_bulk) text += kBulk;
  if (!kernel.in_shared) text += kNotShared;
  if (!kernel.is_coalesced) text += kNotCoalesced;
  return text;
}

bool parse_kernel(std::string_view text, Kernel& kernel) {
  Kernel parsed;
  std::string_view rest = text;
  parsed.is_coalesced = !cut_end(rest, kNotCoalesced);
  parsed.in_shared = !cut_end(rest, kNotShared);
  parsed.is_bulk = cut_end(rest, kBulk);
  const auto next = [&rest] {
    const size_t slash = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, slash);
    rest.remove_prefix(std::min(slash + 1, rest.size()));
    return part;
  };
  const auto type = find_name<KernelType>(kTypeNames, next());
  if (!type) return false;
  parsed.type = *type;
  int64_t* const numbers[] = {&parsed.tile, &parsed.threads, &parsed.stages};
  size_t count = 0;
  while (!rest.empty()) {
    const std::string_view part = next();
    bool is_known = count < std::size(numbers) && parse_number(part, *numbers[count]);
    if (is_known) ++count;
    for (const auto& [field, member] : kShapeFields) {
      is_known = is_known || (part.starts_with(cat(field, '=')) &&
                              parse_number(part.substr(field.size() + 1), parsed.shape.*member));
    }
    if (!is_known) return false;
  }
  if (name(parsed) != text) return false;  // another order, zeros at the end, a part twice
  kernel = parsed;
  return true;
}

}  // namespace cuop::backend
