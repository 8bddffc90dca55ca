// Reading and writing another process's memory on the same host: one copy where a message library
// or a socket needs two and more. The system allows it between processes of one user, unless a
// container or a security module forbids it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

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
/// The same of writing.
bool is_writable(const MemoryAddress& address);
/// Bytes [offset, offset + bytes) of what an address names.
struct MemoryRun {
  int64_t offset = 0;
  int64_t bytes = 0;
};
/// As many runs as a system call takes.
inline constexpr size_t kMostRuns = 1024;

/// Copies the runs, kMostRuns and 1 GiB at most, to `to`, one behind the other. False when the
/// system refuses, or not all of it is there.
bool read_memory(const MemoryAddress& address, std::span<const MemoryRun> runs, void* to);
/// Copies what lies behind each other at `from` to the runs, after another look whether it is that
/// process. False likewise; some of it may have been written then.
bool write_memory(const MemoryAddress& address, std::span<const MemoryRun> runs, const void* from);

}  // namespace cuop::dist
