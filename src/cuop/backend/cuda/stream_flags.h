// Numbers in the host's memory by which streams wait for each other, also those of several
// processes: one stream writes a number when its work has come so far, another one waits until a
// number is reached. Where nothing comes any more, the host writes it.
#pragma once

#include <atomic>
#include <cstdint>

#include "cuop/core/noncopyable.h"
#include "cuop/core/stream.h"

namespace cuop::backend::cuda {

using Flag = std::atomic<uint32_t>;
static_assert(sizeof(Flag) == sizeof(uint32_t) && Flag::is_always_lock_free);

/// Whether the flag has come to the number. Numbers count on behind the largest with 0: half of all
/// numbers lie before another one, half behind it.
inline bool has_reached(const Flag& flag, uint32_t number) {
  return static_cast<int32_t>(flag.load(std::memory_order_acquire) - number) >= 0;
}

/// Page-locks memory that the caller has mapped, so that streams of the device use flags in it.
class FlagMemory : NonCopyable {
 public:
  /// The driver's error where it does not take the memory.
  FlagMemory(Device device, void* data, int64_t bytes);
  /// No work that uses it is in flight.
  ~FlagMemory();

  /// As work of a stream of the device: writes the number, behind which everything is to be seen
  /// that the stream did before.
  void write(const Flag& flag, uint32_t number, Stream stream) const;
  /// What the stream gets from now on comes after the number has been reached.
  void await(const Flag& flag, uint32_t number, Stream stream) const;

 private:
  uint64_t address_of(const Flag& flag) const;

  Device device_;
  char* data_;
  uint64_t on_device_ = 0;  ///< the address of `data_` for streams
};

}  // namespace cuop::backend::cuda
