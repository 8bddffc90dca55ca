// The flags that the streams of one rank wait for, in memory of the host that the ranks of a
// communicator share: its own GPU waits on them, the GPUs of the others write them, and any of the
// processes can when nothing comes any more.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "cuop/backend/cuda/stream_flags.h"
#include "cuop/core/noncopyable.h"
#include "cuop/memory/shared_memory.h"

namespace cuop::dist::fabric {

class FlagPage : NonCopyable {
 public:
  using Flag = backend::cuda::Flag;
  /// Written by the owner's streams: the calls that its GPU has come to and come through.
  /// And by any process, as a word (`Word`): that what the owner waits for may never come, and that
  /// what it receives from now on means nothing.
  struct alignas(128) Owner {
    Flag begun, done, given_up, tainted;
  };
  /// Written by the streams of another rank: the tensors for the owner that are there, and those of
  /// the owner that it has read. And by its process, before it gives a word: why.
  struct alignas(128) Peer {
    Flag ready, read;
    char text[376];
  };
  /// Who is to blame, by its number in the root, and the rank here that says so. 0 is no word.
  struct Word {
    int blamed, teller;
    static uint32_t of(int blamed, int teller) {
      return static_cast<uint32_t>(blamed + 1) | static_cast<uint32_t>(teller) << 16;
    }
    static Word from(uint32_t word) {
      return {static_cast<int>(word & 0xffff) - 1, static_cast<int>(word >> 16)};
    }
  };

  static int64_t bytes(int ranks) {
    return static_cast<int64_t>(sizeof(Owner)) + ranks * static_cast<int64_t>(sizeof(Peer));
  }
  FlagPage(Device device, std::shared_ptr<memory::SharedMemory> memory)
      : memory_(std::move(memory)), flags_(device, memory_->data(), memory_->name().bytes) {}

  /// Of new memory, all zero.
  void set_all(int ranks, uint32_t number) {
    new (memory_->data()) Owner{number, number, 0, 0};
    for (int rank = 0; rank < ranks; ++rank) new (&from(rank)) Peer{number, number, {}};
  }

  const memory::SharedMemoryName& name() const { return memory_->name(); }
  const std::shared_ptr<memory::SharedMemory>& memory() const { return memory_; }
  Owner& owner() const { return *static_cast<Owner*>(memory_->data()); }
  Peer& from(int rank) const { return reinterpret_cast<Peer*>(&owner() + 1)[rank]; }
  static const Peer& from(const Owner& owner, int rank) {
    return reinterpret_cast<const Peer*>(&owner + 1)[rank];
  }
  /// What the rank has said; also of letters without an end.
  static std::string text_of(const Peer& peer) {
    return {peer.text, strnlen(peer.text, sizeof peer.text)};
  }
  /// By which streams of the device use them.
  const backend::cuda::FlagMemory& flags() const { return flags_; }

 private:
  std::shared_ptr<memory::SharedMemory> memory_;
  backend::cuda::FlagMemory flags_;
};

}  // namespace cuop::dist::fabric
