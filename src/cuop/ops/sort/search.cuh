// Places of values among sorted elements, a binary search a thread.
#pragma once

#include "cuop/ops/sort/search_arguments.cuh"

namespace cuop::jit {

template <class Key, NumberKind Kind>
CUOP_FN void search_sorted(const SortedSearch& a) {
  const auto key = [&](const void* from, int64_t i) {
    return encode_key<Kind, true>(static_cast<const Key*>(from)[i], static_cast<Key>(a.infinity));
  };
  const auto key_at = [&](int64_t i) { return key(a.sorted, i); };
  for (int64_t i = int64_t(blockIdx.x) * kSearchThreads + threadIdx.x; i < a.count;
       i += int64_t(gridDim.x) * kSearchThreads) {
    a.places[i] = place_of(key(a.values, i), a.length, a.is_right, key_at);
  }
}

}  // namespace cuop::jit
