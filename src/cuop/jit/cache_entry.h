// One entry of the kernel cache as the bytes of its file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cuop::jit {

struct KernelBinary {
  std::string image;
  double made_in_ms = 0.0;  ///< what compiling it cost
};
struct KernelEntry {
  std::string key;
  std::string name;  ///< of the kernel
  KernelBinary binary;
};

/// How the file of an entry begins, in this format and in others.
inline constexpr std::string_view kEntryHeader = "cuop kernel ";

std::string encode_entry(const KernelEntry& entry);
/// Nothing unless every byte is as it was written.
std::optional<KernelEntry> decode_entry(std::string_view content);

}  // namespace cuop::jit
