// Finds uses of the same memory by two threads of one launch, one of them a write, that nothing
// puts in order: between threads of a block barriers do, between lanes of a warp __syncwarp too,
// between blocks a fence and then an atomic function on one side and an atomic function on the
// other.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/simulator/kernel_interface.h"

namespace cuop::simulator {

class Races {
 public:
  void begin_launch();
  /// The blocks of a launch begin one after the other.
  void begin_block(const Index3& block, uintptr_t shared_begin, uintptr_t shared_end);
  void at_barrier() { ++moment_; }
  void at_warp_barrier(unsigned warp) { ++warp_clocks_[warp]; }

  /// "" or with whom the thread is not in order.
  std::string use(Access access, uintptr_t address, uintptr_t bytes, unsigned thread);

 private:
  static constexpr unsigned kMany = 0xffff, kWarps = 32, kWarpThreads = 32;
  static constexpr uintptr_t kPageBytes = 4096;

  /// Who did something last, or before the last barrier of all that could.
  struct Use {
    uint32_t block = 0;   ///< counted from 1; 0: nobody
    uint32_t moment = 0;  ///< between which barriers
    uint32_t clock = 0;   ///< of the warp
    uint16_t thread = 0;  ///< or kMany of one warp
    uint16_t warp = 0;    ///< or kMany
    bool is_atomic = false;
  };
  struct Byte {
    Use write, read;
  };
  using Page = std::array<Byte, kPageBytes>;
  /// What of a block orders others behind it.
  struct BlockPast {
    Index3 index;
    uint32_t fence = 0, atomic = 0;  ///< the moments of the last
    uint32_t atomic_thread = 0;
  };

  Byte& at(uintptr_t address);
  bool is_unordered(const Use& before, const Use& now, bool is_shared) const;
  bool is_behind(const Use& before, const Use& now) const;
  static void remember_read(Use& read, const Use& now);
  std::string name(const Use& use) const;

  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages_;
  uintptr_t last_number_ = 0;
  Page* last_page_ = nullptr;
  std::vector<BlockPast> blocks_;
  std::array<uint32_t, kWarps> warp_clocks_{};
  uint32_t moment_ = 0;
  uintptr_t shared_begin_ = 0, shared_end_ = 0;
};

}  // namespace cuop::simulator
