// Sequences made where they are wanted.
#pragma once

#include "cuop/jit/kernels/elementwise.cuh"
#include "cuop/ops/create/create_arguments.cuh"

namespace cuop::jit {

template <class T>
CUOP_FN T sequence_element(const WholeSequence& sequence, int64_t i) {
  const uint64_t bits = sequence.bits(i);
  return sequence.is_large(i) ? convert<T>(bits) : convert<T>(static_cast<int64_t>(bits));
}
template <class T, class Sequence>
CUOP_FN T sequence_element(const Sequence& sequence, int64_t i) {
  return convert<T>(sequence.value(i));
}

/// Each thread takes as many neighbours as one access of 16 bytes holds.
template <class T, class Sequence>
CUOP_FN void fill_sequence(const SequenceFill<Sequence>& a) {
  constexpr int kEach = 16 / static_cast<int>(sizeof(T));
  T* const out = static_cast<T*>(a.out);
  const bool is_aligned = reinterpret_cast<uint64_t>(out) % 16 == 0;
  const int64_t step = int64_t(gridDim.x) * blockDim.x * kEach;
  int64_t first = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * kEach;
  for (; first < a.count; first += step) {
    T values[kEach];
#pragma unroll
    for (int k = 0; k < kEach; ++k) values[k] = sequence_element<T>(a.sequence, first + k);
    const int64_t left = a.count - first;
    if (is_aligned && left >= kEach) {
      store_pack(out + first, values);
    } else {
      store_part(out + first, values, left < kEach ? static_cast<int>(left) : kEach);
    }
  }
}

}  // namespace cuop::jit
