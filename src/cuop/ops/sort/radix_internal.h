// Numbers as unsigned keys of the same order, and a stable radix sort of such keys (least
// significant digit first, digits that are all equal skipped).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "cuop/core/dtype.h"
#include "cuop/core/half.h"
#include "cuop/core/interrupt.h"
#include "cuop/jit/kernels/narrow.h"
#include "cuop/ops/sort/sort_arguments.cuh"

namespace cuop::kernels {

template <class T>
using KeyOf =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

template <class T>
inline constexpr bool is_floating_number = std::is_floating_point_v<T> || jit::is_narrow_type<T>;

template <class T>
inline constexpr jit::NumberKind kKindOf = is_floating_number<T> ? jit::NumberKind::kFloating
                                           : std::is_signed_v<T> ? jit::NumberKind::kSigned
                                                                 : jit::NumberKind::kUnsigned;
/// The bits of +inf; 0 for integers.
template <class T>
constexpr KeyOf<T> infinity_bits() {
  if constexpr (!is_floating_number<T>) {
    return 0;
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<KeyOf<T>>(std::numeric_limits<T>::infinity());
  } else {
    return T(std::numeric_limits<float>::infinity()).bits;
  }
}

template <bool IsMerging, class T>
KeyOf<T> encode(T value) {
  return jit::encode_key<kKindOf<T>, IsMerging>(std::bit_cast<KeyOf<T>>(value), infinity_bits<T>());
}
template <class T>
T decode(KeyOf<T> key) {
  return std::bit_cast<T>(jit::decode_key<kKindOf<T>>(key));
}

/// Calls body for each record; a long line can be interrupted.
template <class Record, class Body>
void for_each_interruptibly(const std::vector<Record>& records, Body&& body) {
  constexpr size_t kChunk = size_t{1} << 20;
  for (size_t first = 0; first < records.size(); first += kChunk) {
    if (first > 0) check_interrupt();
    const size_t last = std::min(records.size(), first + kChunk);
    for (size_t i = first; i < last; ++i) body(records[i]);
  }
}

/// Sorts records by `key_of(record)`; `spare` has the same size. Records may be keys themselves.
template <class Record, class KeyFunction>
void radix_sort(std::vector<Record>& records, std::vector<Record>& spare, KeyFunction&& key_of) {
  using Key = std::remove_cvref_t<decltype(key_of(records[0]))>;
  constexpr size_t kDigits = sizeof(Key);
  constexpr size_t kSmall = 200;
  if (records.size() < kSmall) {
    std::stable_sort(records.begin(), records.end(),
                     [&](const Record& a, const Record& b) { return key_of(a) < key_of(b); });
    return;
  }
  std::array<std::array<size_t, 256>, kDigits> counts{};
  for_each_interruptibly(records, [&](const Record& record) {
    const Key key = key_of(record);
    for (size_t d = 0; d < kDigits; ++d) ++counts[d][(key >> (8 * d)) & 0xff];
  });
  for (size_t d = 0; d < kDigits; ++d) {
    const auto digit = [&](const Record& record) {
      return static_cast<size_t>((key_of(record) >> (8 * d)) & 0xff);
    };
    if (counts[d][digit(records[0])] == records.size()) continue;
    size_t start = 0;
    for (size_t& count : counts[d]) {
      const size_t own = count;
      count = start;
      start += own;
    }
    for_each_interruptibly(
        records, [&](const Record& record) { spare[counts[d][digit(record)]++] = record; });
    records.swap(spare);
  }
}

}  // namespace cuop::kernels
