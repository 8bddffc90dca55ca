// One entry of the kernel cache as the bytes of its file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cuop/jit/disk_cache.h"

namespace cuop::jit {

/// How the file of an entry begins, in this format and in others.
inline constexpr std::string_view kEntryHeader = "cuop kernel ";

std::string encode_entry(const std::string& key, const std::string& name,
                         const DiskCache::Binary& binary);

struct DecodedEntry {
  std::string key, name;
  DiskCache::Binary binary;
};
/// Nothing unless every byte is as it was written.
std::optional<DecodedEntry> decode_entry(std::string_view content);

}  // namespace cuop::jit
