// Sizes of small blocks: four a power of two, so that rounding wastes a fifth at most.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace cuop::memory {

class SizeClasses {
 public:
  static constexpr int64_t kLargest = int64_t{1} << 20;  ///< bytes; larger blocks are cut exactly
  static constexpr int kMaxCount = 56;
  static constexpr int kMaxCapacity = 64;

  /// `quantum`: the smallest class and the alignment of all, a power of two from 64 to 4096.
  explicit SizeClasses(int64_t quantum)
      : shift_(std::countr_zero(static_cast<uint64_t>(quantum))) {}

  int count() const { return index(kLargest) + 1; }

  /// The class of a request of 1 to kLargest bytes.
  int index(int64_t bytes) const {
    const auto last = static_cast<uint64_t>(bytes - 1) >> shift_;
    if (last < 4) return static_cast<int>(last);
    const int octave = static_cast<int>(std::bit_width(last)) - 3;
    return 4 + octave * 4 + static_cast<int>((last >> octave) & 3);
  }
  int64_t bytes(int index) const {
    if (index < 4) return int64_t{index + 1} << shift_;
    const int octave = (index - 4) / 4, step = (index - 4) % 4;
    return int64_t{5 + step} << (octave + shift_);
  }
  /// How many idle blocks of the class a thread keeps at most.
  int capacity(int index) const {
    return static_cast<int>(
        std::clamp<int64_t>((int64_t{256} << 10) / bytes(index), 4, kMaxCapacity));
  }

 private:
  int shift_;
};

}  // namespace cuop::memory
