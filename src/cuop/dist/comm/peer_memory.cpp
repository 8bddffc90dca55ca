#include "cuop/dist/comm/peer_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "cuop/core/env.h"
#include "cuop/core/sha256.h"

namespace cuop::dist {
namespace {

using Token = std::array<uint64_t, 2>;

/// What others look at in this process, and a word of it that they may write to. A child of fork
/// has its parent's token at the same address, but its own number.
struct Known {
  Token token;
  uint64_t scratch = 0;
};

const Known& own() {
  static const Known& known = *[] {
    auto* const made = new Known;
    const std::string random = random_bytes(sizeof(Token));
    std::memcpy(made->token.data(), random.data(), random.size());
    return made;
  }();
  return known;
}

using Transfer = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                             unsigned long);

/// All of the runs, between `here` and the process's memory from `there` on.
bool transfer(Transfer way, int64_t process, uint64_t there, std::span<const MemoryRun> runs,
              void* here) {
  std::array<iovec, kMostRuns> remote;
  size_t bytes = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto length = static_cast<size_t>(runs[i].bytes);
    remote[i] = {reinterpret_cast<void*>(there + static_cast<uint64_t>(runs[i].offset)), length};
    bytes += length;
  }
  const iovec local{here, bytes};
  const ssize_t moved = way(static_cast<pid_t>(process), &local, 1, remote.data(), runs.size(), 0);
  return moved >= 0 && static_cast<size_t>(moved) == bytes;
}

bool is_that_process(const MemoryAddress& address) {
  Token token{};
  const MemoryRun all{0, sizeof(token)};
  return transfer(process_vm_readv, address.process, address.token_at, {&all, 1}, &token) &&
         token == address.token;
}

}  // namespace

MemoryAddress address_of(const void* data) {
  const Known& known = own();
  return {getpid(), reinterpret_cast<uint64_t>(&known), known.token,
          reinterpret_cast<uint64_t>(data)};
}

bool is_readable(const MemoryAddress& address) {
  return env().peer_memory.value && is_that_process(address);
}

bool is_writable(const MemoryAddress& address) {
  if (!is_readable(address)) return false;
  uint64_t nothing = 0;
  const MemoryRun scratch{offsetof(Known, scratch), sizeof(nothing)};
  return transfer(process_vm_writev, address.process, address.token_at, {&scratch, 1}, &nothing);
}

bool read_memory(const MemoryAddress& address, std::span<const MemoryRun> runs, void* to) {
  return transfer(process_vm_readv, address.process, address.data, runs, to);
}

bool write_memory(const MemoryAddress& address, std::span<const MemoryRun> runs, const void* from) {
  return is_that_process(address) &&
         transfer(process_vm_writev, address.process, address.data, runs, const_cast<void*>(from));
}

}  // namespace cuop::dist
