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

inline constexpr unsigned kMaxThreads = 1024;  // of a block
inline constexpr unsigned kWarpThreads = 32, kMaxWarps = kMaxThreads / kWarpThreads;

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
  static constexpr unsigned kMany = 0xffff, kManyWarps = 0xff;
  static constexpr uint32_t kPageBytes = 4096, kMostUnit = 4;  // 2^4 bytes
  /// Pages whose records are kept for the next launch, at most, and those found without a search.
  static constexpr size_t kKeptPages = 1024, kNearPages = 64;

  /// Who did something last, or before the last barrier of all that could.
  struct Use {
    uint32_t block = 0;   ///< counted from 1 over all launches; up to past_: nobody
    uint32_t moment = 0;  ///< between which barriers
    uint32_t clock = 0;   ///< of the warp
    uint16_t thread = 0;  ///< or kMany of one warp
    uint8_t warp = 0;     ///< or kManyWarps
    bool is_atomic = false;
  };
  struct Uses {
    Use write, read;
  };
  /// Of each unit of a page: the largest 2^unit bytes, up to 16, that all uses of the launch are
  /// multiples of, and their addresses too.
  struct Page {
    std::vector<Uses> uses = std::vector<Uses>(kPageBytes >> kMostUnit);
    uint32_t past = 0;  ///< past_ of the launch that used it last
    uint32_t unit = kMostUnit;
  };
  struct NearPage {
    uintptr_t number = ~uintptr_t{0};
    Page* page = nullptr;
  };
  /// What of a block orders others behind it.
  struct BlockPast {
    Index3 index;
    uint32_t fence = 0, atomic = 0;  ///< the moments of the last
    uint32_t atomic_thread = 0;
  };

  Page& page_at(uintptr_t number);
  static void divide(Page& page, uint32_t unit);
  bool is_unordered(const Use& before, const Use& now, bool is_shared) const;
  bool is_behind(const Use& before, const Use& now) const;
  static void remember_read(Use& read, const Use& now);
  const BlockPast& block(const Use& use) const { return blocks_[use.block - past_ - 1]; }
  std::string name(const Use& use) const;

  std::unordered_map<uintptr_t, Page> pages_;
  std::array<NearPage, kNearPages> near_;
  std::vector<BlockPast> blocks_;
  std::array<uint32_t, kMaxWarps> warp_clocks_{};
  uint32_t past_ = 0;  ///< blocks of the launches before
  uint32_t moment_ = 0;
  uintptr_t shared_begin_ = 0, shared_end_ = 0;
};

}  // namespace cuop::simulator
