// Sizes of memory as people write them: "2GB", "1.5 GiB".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cuop {

/// 1536 -> "1.5 KiB".
std::string format_bytes(int64_t bytes);

/// A number of bytes rounded up; at most 2^61, which may be added up.
int64_t whole_bytes(double bytes);

/// "4096", "64MB", "1.5 GiB" -> bytes. K, M, G and T are powers of 1024 with or without the i, as
/// in other tools that set the memory of a GPU. ExecutionError "who: ..." when it is no such size.
int64_t parse_bytes(std::string_view text, std::string_view who);

}  // namespace cuop
