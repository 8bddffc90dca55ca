// Numbers as unsigned keys of the same order, on the host and in kernels alike.
#pragma once

#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

/// What the bits of a number mean.
enum class NumberKind { kUnsigned, kSigned, kFloating };

/// The key's order is the number's, with every NaN at the top; `infinity` are the bits of +inf of
/// floating numbers. With `IsMerging`, -0 becomes 0 and all NaN become one: equal elements have
/// equal keys. Without, `decode_key` restores all but a NaN's sign.
template <NumberKind Kind, bool IsMerging, class Key>
CUOP_FN Key encode_key(Key bits, Key infinity) {
  constexpr Key kSign = static_cast<Key>(Key{1} << (8 * sizeof(Key) - 1));
  if constexpr (Kind == NumberKind::kFloating) {
    const Key size = static_cast<Key>(bits & ~kSign);
    if (size > infinity) return static_cast<Key>(IsMerging ? ~Key{0} : bits | kSign);
    if (IsMerging && size == 0) bits = 0;
    return static_cast<Key>((bits & kSign) != 0 ? ~bits : bits | kSign);
  } else if constexpr (Kind == NumberKind::kSigned) {
    return static_cast<Key>(bits ^ kSign);
  } else {
    return bits;
  }
}

template <NumberKind Kind, class Key>
CUOP_FN Key decode_key(Key key) {
  constexpr Key kSign = static_cast<Key>(Key{1} << (8 * sizeof(Key) - 1));
  if constexpr (Kind == NumberKind::kFloating) {
    return static_cast<Key>((key & kSign) != 0 ? key & ~kSign : ~key);
  } else if constexpr (Kind == NumberKind::kSigned) {
    return static_cast<Key>(key ^ kSign);
  } else {
    return key;
  }
}

}  // namespace cuop::jit
