#include "cuop/jit/cache_entry.h"

#include <cstdlib>

#include "cuop/core/json.h"
#include "cuop/core/sha256.h"
#include "cuop/core/text.h"

namespace cuop::jit {

namespace {

// Lines of text, then the image: "head -5" shows what a file is.
constexpr std::string_view kMagic = "cuop kernel 1";
static_assert(kMagic.starts_with(kEntryHeader));

/// The text up to the next line's end, which is taken off; nothing when there is none.
std::optional<std::string_view> take_line(std::string_view& rest) {
  const size_t end = rest.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return line;
}

}  // namespace

std::string encode_entry(const KernelEntry& entry) {
  const KernelBinary& binary = entry.binary;
  const std::string body = cat(entry.key, "\n", json_escape(entry.name), "\n", binary.made_in_ms,
                               "\n", binary.image.size(), "\n", binary.image);
  return cat(kMagic, "\n", sha256_hex(body), "\n", body);
}

std::optional<KernelEntry> decode_entry(std::string_view content) {
  const auto magic = take_line(content);
  if (!magic || *magic != kMagic) return std::nullopt;
  const auto checksum = take_line(content);
  if (!checksum || *checksum != sha256_hex(content)) return std::nullopt;
  const auto key = take_line(content), name = take_line(content), time = take_line(content),
             size = take_line(content);
  if (!size || *size != cat(content.size())) return std::nullopt;
  return KernelEntry{std::string(*key),
                     std::string(*name),
                     {std::string(content), std::strtod(std::string(*time).c_str(), nullptr)}};
}

}  // namespace cuop::jit
