#include <algorithm>
#include <cstring>
#include <type_traits>

#include "cuop/backend/cpu/lanes.h"
#include "cuop/ops/sort/rank_kernels.h"

namespace cuop::kernels {

template <class Level, class Key>
void rank_keys(const Key* keys, int64_t count, Key* ranks) {
  // Instruction sets compare signed numbers, whose order is that of keys with the top bit turned.
  using Number = std::make_signed_t<Key>;
  constexpr int64_t kLanes = lanes::kRegisterBytes / static_cast<int64_t>(sizeof(Key));
  using Lanes [[gnu::vector_size(lanes::kRegisterBytes)]] = Number;
  using Counts [[gnu::vector_size(lanes::kRegisterBytes)]] = Key;
  constexpr Key kTop = static_cast<Key>(Key{1} << (8 * sizeof(Key) - 1));
  Number values[kRankedLine<Key> + static_cast<size_t>(kLanes)];
  for (int64_t j = 0; j < count; ++j) values[j] = static_cast<Number>(keys[j] ^ kTop);
  std::fill_n(values + count, kLanes, Number{0});
  Lanes places;
  for (int64_t lane = 0; lane < kLanes; ++lane) places[lane] = static_cast<Number>(lane);
  for (int64_t block = 0; block < count; block += kLanes) {
    const int64_t end = std::min(block + kLanes, count);
    Lanes own;
    Counts before = {};
    std::memcpy(&own, values + block, sizeof own);
    // What is true is all ones in a lane, the negative of 1.
    for (int64_t j = 0; j < block; ++j) before -= static_cast<Counts>(values[j] <= own);
    for (int64_t j = block; j < end; ++j) {
      const auto place = static_cast<Number>(j - block);
      const auto is_before = static_cast<Counts>(values[j] < own);
      const auto is_equal = static_cast<Counts>(values[j] == own);
      before -= is_before | (is_equal & static_cast<Counts>(place < places));
    }
    for (int64_t j = end; j < count; ++j) before -= static_cast<Counts>(values[j] < own);
    std::memcpy(ranks + block, &before, static_cast<size_t>(end - block) * sizeof(Key));
  }
}
template void rank_keys<isa::CUOP_ISA, uint8_t>(const uint8_t*, int64_t, uint8_t*);
template void rank_keys<isa::CUOP_ISA, uint16_t>(const uint16_t*, int64_t, uint16_t*);
template void rank_keys<isa::CUOP_ISA, uint32_t>(const uint32_t*, int64_t, uint32_t*);
template void rank_keys<isa::CUOP_ISA, uint64_t>(const uint64_t*, int64_t, uint64_t*);

}  // namespace cuop::kernels
