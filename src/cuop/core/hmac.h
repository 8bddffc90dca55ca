// Proofs of knowing a secret: HMAC-SHA-256 (RFC 2104, FIPS 198-1) and what goes with it.
#pragma once

#include <string>
#include <string_view>

namespace cuop {

inline constexpr size_t kProofBytes = 32;

/// 32 bytes that only who knows the key can compute for the message.
std::string hmac_sha256(std::string_view key, std::string_view message);

/// Whether both are the same, in a time that tells nothing about where they differ. Texts of
/// different lengths differ at once: lengths are no secret.
bool equal_in_constant_time(std::string_view a, std::string_view b);

/// Bytes that nobody can guess, from the system. ExecutionError when it has none.
std::string random_bytes(size_t count);

}  // namespace cuop
