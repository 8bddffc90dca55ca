#include "cuop/dist/comm/peer_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cstring>

#include "cuop/core/env.h"
#include "cuop/core/sha256.h"

namespace cuop::dist {
namespace {

using Token = std::array<uint64_t, 2>;

/// A child of fork has its parent's token at the same address, but its own number.
const Token& own_token() {
  static const Token& token = *[] {
    auto* const made = new Token;
    const std::string random = random_bytes(sizeof(Token));
    std::memcpy(made->data(), random.data(), random.size());
    return made;
  }();
  return token;
}

bool read(int64_t process, uint64_t from, void* to, int64_t bytes) {
  auto* place = static_cast<char*>(to);
  while (bytes > 0) {
    const auto length = static_cast<size_t>(bytes);
    const iovec local{place, length};
    const iovec remote{reinterpret_cast<void*>(from), length};
    const ssize_t got = process_vm_readv(static_cast<pid_t>(process), &local, 1, &remote, 1, 0);
    if (got <= 0) return false;
    place += got;
    from += static_cast<uint64_t>(got);
    bytes -= got;
  }
  return true;
}

}  // namespace

MemoryAddress address_of(const void* data) {
  const Token& token = own_token();
  return {getpid(), reinterpret_cast<uint64_t>(&token), token, reinterpret_cast<uint64_t>(data)};
}

bool is_readable(const MemoryAddress& address) {
  if (!env().peer_memory.value) return false;
  Token token{};
  return read(address.process, address.token_at, &token, sizeof(token)) && token == address.token;
}

bool read_memory(const MemoryAddress& address, int64_t offset, int64_t bytes, void* to) {
  return read(address.process, address.data + static_cast<uint64_t>(offset), to, bytes);
}

}  // namespace cuop::dist
