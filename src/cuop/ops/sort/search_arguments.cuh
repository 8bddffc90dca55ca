// What the kernel of searchsorted is given; host and device read the same struct.
#pragma once

#include "cuop/ops/sort/sort_arguments.cuh"

namespace cuop::jit {

inline constexpr int kSearchThreads = 256;

/// places[i] = how many of the rising `sorted` stand before values[i].
struct SortedSearch {
  const void* sorted;
  const void* values;
  int64_t* places;
  int64_t length, count;  ///< of sorted and of values
  uint64_t infinity;      ///< its bits; 0 for integers
  bool is_right;          ///< equal ones stand before too
};

/// The place of a key in the `length` keys that key_at(i) gives.
template <class Key, class KeyAt>
CUOP_FN int64_t place_of(Key key, int64_t length, bool is_right, const KeyAt& key_at) {
  int64_t low = 0, high = length;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const Key other = key_at(middle);
    if (is_right ? other <= key : other < key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace cuop::jit
