// Vectors of 64 bytes with the usual operators, for *_isa.cpp files. The compiler splits them into
// the registers of the instruction set, so every level computes the same lanes and the same bits.
#pragma once

#include <cstdint>
#include <cstring>

// The warning concerns passing vectors between functions; everything here is inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace cuop::lanes {

inline constexpr int kBytes = 64;
template <class T>
inline constexpr int kCount = kBytes / static_cast<int>(sizeof(T));

namespace detail {
template <class T, int Bytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(Bytes)));
};
}  // namespace detail

/// kCount<T> lanes of T. Comparisons give masks of integers; `mask ? a : b` selects by lane.
template <class T>
using Vector = typename detail::VectorOf<T, kBytes>::type;
/// As many lanes of T as a vector of double has.
template <class T>
using Narrow = typename detail::VectorOf<T, static_cast<int>(sizeof(T)) * kCount<double>>::type;

template <class T>
[[gnu::always_inline]] inline Vector<T> load(const T* source) {
  Vector<T> result;
  std::memcpy(&result, source, sizeof(result));
  return result;
}
template <class T>
[[gnu::always_inline]] inline void store(T* destination, const Vector<T>& value) {
  std::memcpy(destination, &value, sizeof(value));
}
template <class T>
[[gnu::always_inline]] inline Vector<T> broadcast(T value) {
  return value - Vector<T>{};  // x - 0 keeps every x, a negative zero too
}

/// Eight numbers as doubles.
[[gnu::always_inline]] inline Vector<double> load_double(const double* source) {
  return load(source);
}
[[gnu::always_inline]] inline Vector<double> load_double(const float* source) {
  Narrow<float> narrow;
  std::memcpy(&narrow, source, sizeof(narrow));
  return __builtin_convertvector(narrow, Vector<double>);
}

/// Folds the lanes by halves, in the same order on every machine.
template <class T, class Combine>
[[gnu::always_inline]] inline T fold(const Vector<T>& value, Combine&& combine) {
  T lane[kCount<T>];
  std::memcpy(lane, &value, sizeof(lane));
  for (int half = kCount<T> / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lane[i] = combine(lane[i], lane[i + half]);
  }
  return lane[0];
}

}  // namespace cuop::lanes
