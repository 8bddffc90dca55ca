// SHA-256 (FIPS 180-4): names of files by content, and checksums that nothing passes by accident.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace cuop {

/// Takes data in parts. A part is not separated from the next one: write lengths where parts could
/// be confused.
class Sha256 {
 public:
  Sha256& add(std::string_view data);
  /// The 32 bytes of the sum; nothing may be added afterwards.
  std::string bytes();
  /// The same as 64 hexadecimal digits.
  std::string hex();

 private:
  void take_block(const unsigned char* block);

  std::array<uint32_t, 8> state_{0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                                 0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
  std::array<unsigned char, 64> waiting_{};
  uint64_t bytes_ = 0;
};

std::string sha256_hex(std::string_view data);

/// Two hexadecimal digits for each byte.
std::string to_hex(std::string_view bytes);

inline constexpr size_t kProofBytes = 32;

/// 32 bytes that only who knows the key can compute for the message.
std::string hmac_sha256(std::string_view key, std::string_view message);

/// Whether both are the same, in a time that tells nothing about where they differ. Texts of
/// different lengths differ at once: lengths are no secret.
bool equal_in_constant_time(std::string_view a, std::string_view b);

/// Bytes that nobody can guess, from the system. ExecutionError when it has none.
std::string random_bytes(size_t count);

}  // namespace cuop
