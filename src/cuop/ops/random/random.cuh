// Random numbers of successive counter values, four or two of each as on the CPU and of the same
// bits.
#pragma once

#include "cuop/jit/kernels/elementwise.cuh"
#include "cuop/jit/kernels/random_numbers.h"
#include "cuop/ops/random/random_arguments.cuh"

namespace cuop::jit {

enum class DrawKind { kNormal, kUniform, kInteger };

template <class T>
CUOP_FN T drawn_as(float number) {
  if constexpr (sizeof(T) == 2) {
    return narrowed<T>(number);
  } else {
    return number;
  }
}

template <class T, DrawKind Kind>
CUOP_FN void draw_four(const RandomFill& a, Words words, T (&numbers)[4]) {
  const Word all[4] = {words.a, words.b, words.c, words.d};
  const auto first = static_cast<float>(a.first), second = static_cast<float>(a.second);
  if constexpr (Kind == DrawKind::kNormal) {
#pragma unroll
    for (int k = 0; k < 4; k += 2) {
      const Pair<float> pair = box_muller<float>(all[k], all[k + 1]);
      numbers[k] = drawn_as<T>(exact::multiply_add(second, pair.first, first));
      numbers[k + 1] = drawn_as<T>(exact::multiply_add(second, pair.second, first));
    }
  } else {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      numbers[k] = drawn_as<T>(stretched(unit_float<uniform_digits<T>>(all[k]), first, second,
                                         static_cast<float>(a.last)));
    }
  }
}

template <class T, DrawKind Kind>
CUOP_FN void draw_two(const RandomFill& a, Words words, T (&numbers)[2]) {
  const WideWord low = wide(words.a, words.b), high = wide(words.c, words.d);
  if constexpr (Kind == DrawKind::kNormal) {
    const Pair<double> pair = box_muller<double>(low, high);
    numbers[0] = exact::multiply_add(a.second, pair.first, a.first);
    numbers[1] = exact::multiply_add(a.second, pair.second, a.first);
  } else if constexpr (Kind == DrawKind::kUniform) {
    numbers[0] = stretched(unit_double(low), a.first, a.second, a.last);
    numbers[1] = stretched(unit_double(high), a.first, a.second, a.last);
  } else {
    const auto start = static_cast<WideWord>(a.low);
    numbers[0] = static_cast<T>(start + below(low, a.range));
    numbers[1] = static_cast<T>(start + below(high, a.range));
  }
}

/// One counter value a thread at a time.
template <class T, DrawKind Kind>
CUOP_FN void random_fill(const RandomFill& a) {
  constexpr int kEach = Kind == DrawKind::kInteger || sizeof(T) == 8 ? 2 : 4;
  T* const out = static_cast<T*>(a.out);
  const bool is_aligned = reinterpret_cast<uint64_t>(out) % (kEach * sizeof(T)) == 0;
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  const int64_t first = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t block = first; block * kEach < a.count; block += step) {
    const Words words = philox(a.counter + static_cast<WideWord>(block), a.seed);
    T numbers[kEach];
    if constexpr (kEach == 4) {
      draw_four<T, Kind>(a, words, numbers);
    } else {
      draw_two<T, Kind>(a, words, numbers);
    }
    const int64_t left = a.count - block * kEach;
    if (is_aligned && left >= kEach) {
      store_pack(out + block * kEach, numbers);
    } else {
      store_part(out + block * kEach, numbers, left < kEach ? static_cast<int>(left) : kEach);
    }
  }
}

}  // namespace cuop::jit
