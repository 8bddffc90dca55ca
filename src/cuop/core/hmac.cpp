#include "cuop/core/hmac.h"

#include <sys/random.h>

#include <cerrno>

#include "cuop/core/error.h"
#include "cuop/core/sha256.h"

namespace cuop {

namespace {

constexpr size_t kBlockBytes = 64;  // that SHA-256 takes at a time

std::string xored(std::string key, char with) {
  for (char& byte : key) byte = static_cast<char>(byte ^ with);
  return key;
}

}  // namespace

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
