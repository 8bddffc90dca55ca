// Memory debugging: a resource over another one that surrounds every block with red zones, poisons
// what is freed and keeps it from reuse for a while, and knows what was never freed.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

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
      : upstream_(upstream), access_(access) {}
  ~GuardResource() override { release_held(0, 0); }

  void* allocate(int64_t bytes, Stream stream) override;
  void deallocate(void* data, int64_t bytes, Stream stream) noexcept override;
  void record_stream(void* data, Stream stream) override;
  /// The upstream's, where allocated_bytes are those of the guarded blocks without their zones.
  Statistics statistics() const override;
  void reset_peak() override { upstream_.reset_peak(); }
  int64_t release_cached() override;
  Device device() const override { return upstream_.device(); }

  /// Looks at the zones of every live block and the poison of every freed one that is still held;
  /// returns everything that was found wrong since the guard exists, here and at frees, oldest
  /// first.
  std::vector<std::string> check();
  /// Live blocks, the largest first.
  std::vector<Leak> leaks() const;

 private:
  struct Record {
    int64_t bytes = 0;
    int64_t since_ns = 0;
    uint32_t site = 0;
    Stream stream;
    bool is_damaged = false;  ///< told already
  };
  struct Held {
    std::byte* data = nullptr;
    Record record;
  };

  std::string describe(const Record& record) const;
  void report(std::string text) noexcept;
  /// Both report what they find, once a block: it is damaged then.
  void check_zones(std::byte* data, Record& record);
  void check_poison(Held& held);
  /// Gives the oldest freed blocks to the upstream until no more than so much is held.
  void release_held(size_t most_blocks, int64_t most_bytes) noexcept;

  MemoryResource& upstream_;
  ByteAccess& access_;
  mutable std::mutex
      mutex_;  ///< guards all below; not held while the upstream or bytes are touched
  std::unordered_map<void*, Record> live_;
  LruCache<void*, Record> freed_{65536};  ///< addresses that were freed and not given out again
  std::deque<Held> held_;
  int64_t held_bytes_ = 0;
  int64_t live_bytes_ = 0;
  std::vector<std::string> reports_;
};

}  // namespace cuop::memory
