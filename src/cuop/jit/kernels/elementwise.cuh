// What generated elementwise kernels are written in: elements of one thread, loaded and stored as
// one access of up to 16 bytes where they lie one after the other.
#pragma once

#include "cuop/jit/kernels/conversion.h"
#include "cuop/jit/kernels/divisor.h"

namespace cuop::jit {

/// The largest element, where only its bytes matter.
struct alignas(16) Word16 {
  uint64_t half[2];
};

template <class T, int Count>
struct alignas(Count * sizeof(T) > 16 ? 16 : Count * sizeof(T)) Pack {
  T values[Count];
};

template <class T, int Count>
CUOP_FN void load_pack(T (&to)[Count], const T* from) {
  const Pack<T, Count> pack = *reinterpret_cast<const Pack<T, Count>*>(from);
#pragma unroll
  for (int k = 0; k < Count; ++k) to[k] = pack.values[k];
}
/// The first `valid` elements, the last of them again for the others.
template <class T, int Count>
CUOP_FN void load_part(T (&to)[Count], const T* from, int valid) {
#pragma unroll
  for (int k = 0; k < Count; ++k) to[k] = from[k < valid ? k : valid - 1];
}
template <class T, int Count, class Stride>
CUOP_FN void load_strided(T (&to)[Count], const T* from, Stride stride) {
#pragma unroll
  for (int k = 0; k < Count; ++k) to[k] = from[k * stride];
}
template <class T, int Count>
CUOP_FN void load_same(T (&to)[Count], const T* from) {
  const T value = *from;
#pragma unroll
  for (int k = 0; k < Count; ++k) to[k] = value;
}

template <class T, int Count>
CUOP_FN void store_pack(T* to, const T (&from)[Count]) {
  Pack<T, Count> pack;
#pragma unroll
  for (int k = 0; k < Count; ++k) pack.values[k] = from[k];
  *reinterpret_cast<Pack<T, Count>*>(to) = pack;
}
template <class T, int Count>
CUOP_FN void store_part(T* to, const T (&from)[Count], int valid) {
#pragma unroll
  for (int k = 0; k < Count; ++k) {
    if (k < valid) to[k] = from[k];
  }
}
template <class T, int Count, class Stride>
CUOP_FN void store_strided(T* to, const T (&from)[Count], Stride stride) {
#pragma unroll
  for (int k = 0; k < Count; ++k) to[k * stride] = from[k];
}

/// The value as a 16-bit float would hold it.
template <class Narrow, class T>
CUOP_FN float rounded(T value) {
  return narrowed<Narrow>(value);
}

}  // namespace cuop::jit
