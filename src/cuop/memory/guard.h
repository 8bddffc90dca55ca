// Memory debugging: a resource over another one that surrounds every block with red zones, poisons
// what is freed and keeps it from reuse for a while, and knows what was never freed.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "cuop/core/fork_mutex.h"
#include "cuop/core/lru_cache.h"
#include "cuop/memory/resource.h"

namespace cuop::memory {

/// How the bytes of a device are written and looked at.
class ByteAccess {
 public:
  virtual ~ByteAccess() = default;
  virtual void fill(void* data, int value, int64_t bytes, Stream stream) = 0;
  /// Offset of the first byte that is not `value`, -1 when all are; waits for the stream's work.
  virtual int64_t find_other(const void* data, int value, int64_t bytes, Stream stream) = 0;
};

class HostBytes final : public ByteAccess {
 public:
  void fill(void* data, int value, int64_t bytes, Stream stream) override;
  int64_t find_other(const void* data, int value, int64_t bytes, Stream stream) override;
};

class GuardResource final : public MemoryResource {
 public:
  static constexpr int64_t kZone = 512;  ///< bytes before and behind a block
  static constexpr int kZoneByte = 0xfd;
  static constexpr int kFreshByte = 0xcd;
  static constexpr int kPoisonByte = 0xdd;
  static constexpr size_t kMaxHeldBlocks = 256;  ///< freed blocks that are not reused yet
  static constexpr int64_t kMaxHeldBytes = int64_t{64} << 20;

  struct Leak {
    int64_t bytes = 0;
    double age_s = 0.0;
    std::string site;
  };

  /// Both must outlive the guard.
  GuardResource(MemoryResource& upstream, ByteAccess& access)
      : upstream_(upstream),
        access_(access),
        peak_bytes_(upstream.statistics().peak_allocated_bytes) {}
  ~GuardResource() override { release_held(0, 0); }

  void* allocate(int64_t bytes, Stream stream) override;
  void deallocate(void* data, int64_t bytes, Stream stream) noexcept override;
  void record_stream(void* data, Stream stream) override;
  /// The upstream's, without zones and without the freed blocks that are held back.
  Statistics statistics() const override;
  void reset_peak() override;
  int64_t release_cached() override;
  Device device() const override { return upstream_.device(); }

  /// Looks at the zones of every live block and the poison of every freed one that is still held;
  /// returns everything that was found wrong since the guard exists, here and at frees, oldest
  /// first. Other threads may allocate and free meanwhile.
  std::vector<std::string> check();
  /// False gives back the freed blocks that are held, and holds none from now on: for a guard that
  /// only lives on for the blocks that came from it.
  void set_holding(bool is_holding);
  /// Live blocks, the largest first.
  std::vector<Leak> leaks() const;

 private:
  struct Record {
    int64_t bytes = 0;
    int64_t since_ns = 0;
    uint32_t site = 0;
    Stream stream;
    uint64_t serial = 0;      ///< addresses are given out again
    bool is_damaged = false;  ///< told already
  };
  struct Held {
    std::byte* data = nullptr;
    Record record;
  };

  std::string describe(const Record& record) const;
  void report(std::string text) noexcept;
  /// What is wrong with a block, at most once: it is damaged then.
  std::vector<std::string> check_zones(std::byte* data, Record& record);
  std::vector<std::string> check_poison(std::byte* data, Record& record);
  /// The record of a block while it is live or held, or null; under mutex_.
  Record* find_live(std::byte* data);
  Record* find_held(std::byte* data);
  /// Looks at one of `blocks` after the other, unless it is gone, and reports what is wrong.
  void check_blocks(const std::vector<Held>& blocks, Record* (GuardResource::*find)(std::byte*),
                    std::vector<std::string> (GuardResource::*check_block)(std::byte*, Record&));
  /// Of bytes that are allocated upstream, those that are live; under mutex_.
  int64_t without_own(int64_t upstream_bytes) const;
  /// Keeps the upstream's peaks and begins new ones. While nothing is held, blocks come and go that
  /// the guard does not see, and what is its own changes at its frees alone: between two of them
  /// the upstream's peak tells that of tensors.
  void take_peaks();
  bool is_being_checked(const std::byte* data) const;  ///< under mutex_
  void release_beyond_bounds() noexcept;
  /// Gives the oldest freed blocks to the upstream until no more than so much is held, or one comes
  /// that is looked at.
  void release_held(size_t most_blocks, int64_t most_bytes) noexcept;

  MemoryResource& upstream_;
  ByteAccess& access_;
  mutable ForkMutex mutex_;  ///< guards all below; not held while the upstream or bytes are touched
  /// Blocks that check() looks at: they are not given back, for which nobody waits, since a look
  /// may wait for a GPU and for Python.
  std::vector<const std::byte*> being_checked_;
  std::unordered_map<void*, Record> live_;
  LruCache<void*, Record> freed_{65536};  ///< addresses that were freed and not given out again
  std::deque<Held> held_;
  int64_t held_bytes_ = 0;
  uint64_t last_serial_ = 0;
  int64_t live_bytes_ = 0;
  int64_t peak_bytes_ = 0;                                   ///< of allocated_bytes
  int64_t peak_active_bytes_ = 0, peak_reserved_bytes_ = 0;  ///< upstream, before take_peaks()
  std::atomic<bool> is_holding_ = true;
  std::vector<std::string> reports_;
};

}  // namespace cuop::memory
