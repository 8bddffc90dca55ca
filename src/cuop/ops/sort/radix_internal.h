// Numbers as unsigned keys of the same order, and a stable radix sort of such keys (least
// significant digit first, digits that are all equal skipped).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "cuop/core/dtype.h"
#include "cuop/core/half.h"
#include "cuop/core/long_loop.h"
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

/// body(0), ..., body(count - 1) of the elements of a line; a long one can be interrupted.
template <class Body>
void for_each_interruptibly(size_t count, Body&& body) {
  in_pieces(static_cast<int64_t>(count), [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) body(i);
  });
}

/// The records in the order of `key_of(record)`, in one of the two, which have the same size.
/// Records may be keys themselves; what is in `spare` before is not read.
template <class Record, class KeyFunction>
std::span<Record> radix_sort(std::span<Record> records, std::span<Record> spare,
                             KeyFunction&& key_of) {
  using Key = std::remove_cvref_t<decltype(key_of(records[0]))>;
  constexpr size_t kDigits = sizeof(Key);
  constexpr size_t kSmall = 200;
  if (records.size() < kSmall) {
    std::stable_sort(records.begin(), records.end(),
                     [&](const Record& a, const Record& b) { return key_of(a) < key_of(b); });
    return records;
  }
  std::array<std::array<size_t, 256>, kDigits> counts{};
  for_each_interruptibly(records.size(), [&, from = records.data()](size_t i) {
    const Key key = key_of(from[i]);
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
    const auto move = [&, places = counts[d].data(), from = records.data(),
                       to = spare.data()](size_t i) { to[places[digit(from[i])]++] = from[i]; };
    for_each_interruptibly(records.size(), move);
    std::swap(records, spare);
  }
  return records;
}

}  // namespace cuop::kernels
