// What is sorted: a key and, where it has one, the place that its element came from.
#pragma once

#include "cuop/ops/sort/sort_arguments.cuh"

namespace cuop::jit {

struct NoPosition {};

template <class Key, class Position>
struct SortRecord {
  Key key;
  Position position;
};

template <class Position>
inline constexpr bool has_position = true;
template <>
inline constexpr bool has_position<NoPosition> = false;

/// The record of an element. Positions are sorted by inverted keys where the order falls, so that
/// equal elements keep their order there too; values are written backwards.
template <NumberKind Kind, class Key, class Position>
CUOP_FN SortRecord<Key, Position> record_of(const SortOrder& order, Key bits, int64_t index) {
  const Key infinity = static_cast<Key>(order.infinity);
  if constexpr (has_position<Position>) {
    const Key key = encode_key<Kind, true>(bits, infinity);
    return {order.is_descending ? static_cast<Key>(~key) : key, static_cast<Position>(index)};
  } else {
    return {encode_key<Kind, false>(bits, infinity), {}};
  }
}

/// To its place `index` in the line that begins at `start` of the output.
template <NumberKind Kind, class Key, class Position>
CUOP_FN void store_sorted(const SortOrder& order, int64_t start, int64_t index,
                          SortRecord<Key, Position> record) {
  const LinePair& lines = order.lines;
  if constexpr (has_position<Position>) {
    static_cast<int64_t*>(lines.out)[start + index * lines.out_step] =
        static_cast<int64_t>(record.position);
  } else {
    const int64_t at = order.is_descending ? lines.length - 1 - index : index;
    static_cast<Key*>(lines.out)[start + at * lines.out_step] = decode_key<Kind>(record.key);
  }
}

template <class Key, class Position>
CUOP_FN void store_run(const SortedRuns& runs, int64_t at, SortRecord<Key, Position> record) {
  static_cast<Key*>(runs.keys)[at] = record.key;
  if constexpr (has_position<Position>)
    static_cast<Position*>(runs.positions)[at] = record.position;
}
template <class Key, class Position>
CUOP_FN SortRecord<Key, Position> load_run(const SortedRuns& runs, int64_t at) {
  const Key key = static_cast<const Key*>(runs.keys)[at];
  if constexpr (has_position<Position>) {
    return {key, static_cast<const Position*>(runs.positions)[at]};
  } else {
    return {key, {}};
  }
}

}  // namespace cuop::jit
