#include "cuop/core/sha256.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "cuop/core/error.h"

namespace cuop {

namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr uint32_t kRounds[64] = {
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u,
    0xab1c5ed5u, 0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu,
    0x9bdc06a7u, 0xc19bf174u, 0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu,
    0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau, 0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u,
    0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u, 0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu,
    0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u, 0xa2bfe8a1u, 0xa81a664bu,
    0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u, 0x19a4c116u,
    0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
    0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u,
    0xc67178f2u};

uint32_t big_endian(const unsigned char* bytes) {
  return static_cast<uint32_t>(bytes[0]) << 24 | static_cast<uint32_t>(bytes[1]) << 16 |
         static_cast<uint32_t>(bytes[2]) << 8 | static_cast<uint32_t>(bytes[3]);
}

constexpr size_t kBlockBytes = 64;  // that SHA-256 takes at a time

std::string xored(std::string key, char with) {
  for (char& byte : key) byte = static_cast<char>(byte ^ with);
  return key;
}

}  // namespace

void Sha256::take_block(const unsigned char* block) {
  uint32_t words[64];
  for (int i = 0; i < 16; ++i) words[i] = big_endian(block + 4 * i);
  for (int i = 16; i < 64; ++i) {
    const uint32_t a = words[i - 15], b = words[i - 2];
    const uint32_t first = std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3);
    const uint32_t second = std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10);
    words[i] = words[i - 16] + first + words[i - 7] + second;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int i = 0; i < 64; ++i) {
    const uint32_t choice = (e & f) ^ (~e & g), majority = (a & b) ^ (a & c) ^ (b & c);
    const uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + choice +
                           kRounds[i] + words[i];
    const uint32_t second = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + majority;
    h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
  }
  const uint32_t added[8] = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state_[i] += added[i];
}

Sha256& Sha256::add(std::string_view data) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(data.data());
  size_t left = data.size(), filled = bytes_ % 64;
  bytes_ += left;
  if (filled > 0) {
    const size_t taken = std::min(left, 64 - filled);
    std::memcpy(waiting_.data() + filled, bytes, taken);
    bytes += taken;
    left -= taken;
    if (filled + taken < 64) return *this;
    take_block(waiting_.data());
  }
  for (; left >= 64; bytes += 64, left -= 64) take_block(bytes);
  if (left > 0) std::memcpy(waiting_.data(), bytes, left);
  return *this;
}

std::string Sha256::bytes() {
  const uint64_t bits = bytes_ * 8;
  std::string padding(1, '\x80');
  padding.append((119 - bytes_ % 64) % 64, '\0');
  for (int shift = 56; shift >= 0; shift -= 8) {
    padding.push_back(static_cast<char>((bits >> shift) & 0xff));
  }
  add(padding);
  std::string digest;
  for (const uint32_t word : state_) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      digest.push_back(static_cast<char>((word >> shift) & 0xff));
    }
  }
  return digest;
}

std::string Sha256::hex() { return to_hex(bytes()); }

std::string sha256_hex(std::string_view data) { return Sha256().add(data).hex(); }

std::string to_hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    text.push_back("0123456789abcdef"[byte >> 4 & 15]);
    text.push_back("0123456789abcdef"[byte & 15]);
  }
  return text;
}

std::string hmac_sha256(std::string_view key, std::string_view message) {
  std::string block(key);
  if (block.size() > kBlockBytes) block = Sha256().add(key).bytes();
  block.resize(kBlockBytes, '\0');
  const std::string inner = Sha256().add(xored(block, 0x36)).add(message).bytes();
  return Sha256().add(xored(block, 0x5c)).add(inner).bytes();
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char difference = 0;  // keeps the compiler from leaving the loop early
  for (size_t i = 0; i < a.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  }
  return difference == 0;
}

std::string random_bytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t done = 0; done < count;) {
    const ssize_t got = getrandom(bytes.data() + done, count - done, 0);
    if (got > 0) {
      done += static_cast<size_t>(got);
    } else if (errno != EINTR) {
      throw ExecutionError("random_bytes: the system gives no random numbers");
    }
  }
  return bytes;
}

}  // namespace cuop
