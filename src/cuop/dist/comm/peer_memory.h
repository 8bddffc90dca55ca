// Reading another process's memory on the same host: one copy where a message library or a socket
// needs two and more. The system allows it between processes of one user, unless a container or a
// security module forbids it.
#pragma once

#include <array>
#include <cstdint>

namespace cuop::dist {

/// Memory of a process, and by what its process is known: a number that may mean another process
/// here (in another container) is told by the token, which no other process has at that address.
struct MemoryAddress {
  int64_t process = 0;
  uint64_t token_at = 0;
  std::array<uint64_t, 2> token = {};
  uint64_t data = 0;
};

/// Of this process.
MemoryAddress address_of(const void* data);
/// Whether the system (and CUOP_PEER_MEMORY) lets this process read that one's memory, and it is
/// that one.
bool is_readable(const MemoryAddress& address);
/// Copies bytes [offset, offset + bytes) of what the address names to `to`. False when the system
/// refuses, or not all of it is there.
bool read_memory(const MemoryAddress& address, int64_t offset, int64_t bytes, void* to);

}  // namespace cuop::dist
