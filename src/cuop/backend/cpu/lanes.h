// Vectors of 64 bytes with the usual operators, for *_isa.cpp files: as many registers as the
// instruction set needs for them. Every level computes the same lanes, and so the same bits.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#ifdef CUOP_ISA

// The warning concerns passing vectors between functions; everything here is inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace cuop::lanes {
// The types differ between the levels, so must their names.
inline namespace CUOP_ISA {

#define CUOP_LANES [[gnu::always_inline]] inline

#if defined(__AVX512F__)
inline constexpr int kRegisterBytes = 64;
#elif defined(__AVX__)
inline constexpr int kRegisterBytes = 32;
#else
inline constexpr int kRegisterBytes = 16;
#endif
inline constexpr int kBytes = 64;
inline constexpr int kParts = kBytes / kRegisterBytes;
template <class T>
inline constexpr int kCount = kBytes / static_cast<int>(sizeof(T));

namespace detail {
template <class T, int Bytes = kRegisterBytes>
struct RegisterOf {
  typedef T type __attribute__((vector_size(Bytes)));
};
template <int Size>
using Signed = std::conditional_t<Size == 8, int64_t, int32_t>;
}  // namespace detail

/// kCount<T> lanes of T.
template <class T>
struct Vector {
  using Register = typename detail::RegisterOf<T>::type;
  Register part[kParts];
};

/// f of every register of the vectors.
template <class T, class F, class... Vectors>
CUOP_LANES Vector<T> each(F&& f, const Vectors&... vectors) {
  Vector<T> result;
#pragma GCC unroll 4  // or accumulators would stay in memory; so everywhere beside these vectors
  for (int i = 0; i < kParts; ++i) result.part[i] = f(vectors.part[i]...);
  return result;
}

// Register by register: GCC copies whole vectors in smaller pieces than AVX's registers, for which
// reading them then has to wait.
template <class T>
CUOP_LANES Vector<T> load(const T* source) {
  Vector<T> result;
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) {
    std::memcpy(&result.part[i], source + i * (kCount<T> / kParts), kRegisterBytes);
  }
  return result;
}
template <class T>
CUOP_LANES void store(T* destination, const Vector<T>& value) {
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) {
    std::memcpy(destination + i * (kCount<T> / kParts), &value.part[i], kRegisterBytes);
  }
}
/// Asks for memory that a loop over contiguous data will reach soon. Loops with more arithmetic
/// than a plain sum keep the hardware's own prefetcher from running far enough ahead.
CUOP_LANES void prefetch(const void* position) {
  __builtin_prefetch(static_cast<const char*>(position) + 4096);
}
template <class T>
CUOP_LANES Vector<T> broadcast(T value) {
  // x - 0 keeps every x, a negative zero too.
  return each<T>([&](const auto& zero) { return value - zero; }, Vector<T>{});
}

template <class T>
CUOP_LANES Vector<T> operator+(const Vector<T>& a, const Vector<T>& b) {
  return each<T>([](const auto& x, const auto& y) { return x + y; }, a, b);
}
template <class T>
CUOP_LANES Vector<T> operator-(const Vector<T>& a, const Vector<T>& b) {
  return each<T>([](const auto& x, const auto& y) { return x - y; }, a, b);
}
template <class T>
CUOP_LANES Vector<T> operator*(const Vector<T>& a, const Vector<T>& b) {
  return each<T>([](const auto& x, const auto& y) { return x * y; }, a, b);
}
template <class T>
CUOP_LANES Vector<T> operator-(const Vector<T>& a, T b) {
  return each<T>([b](const auto& x) { return x - b; }, a);
}
template <class T>
CUOP_LANES Vector<T> operator|(const Vector<T>& a, const Vector<T>& b) {
  return each<T>([](const auto& x, const auto& y) { return x | y; }, a, b);
}

/// The larger (smaller) by lane; b where the two cannot be compared.
template <class T>
CUOP_LANES Vector<T> larger(const Vector<T>& a, const Vector<T>& b) {
  return each<T>([](const auto& x, const auto& y) { return x > y ? x : y; }, a, b);
}
template <class T>
CUOP_LANES Vector<T> smaller(const Vector<T>& a, const Vector<T>& b) {
  return each<T>([](const auto& x, const auto& y) { return x < y ? x : y; }, a, b);
}

/// The bits of |a| as signed integers, which order as the magnitudes do, NaN last.
template <class T>
CUOP_LANES auto magnitude_bits(const Vector<T>& a) {
  using Bits = detail::Signed<static_cast<int>(sizeof(T))>;
  Vector<Bits> result;
  std::memcpy(&result, &a, sizeof(result));
  return each<Bits>([](const auto& x) { return x & std::numeric_limits<Bits>::max(); }, result);
}

/// As many numbers as a vector of double has, as doubles.
CUOP_LANES Vector<double> load_double(const double* source) { return load(source); }
CUOP_LANES Vector<double> load_double(const float* source) {
  constexpr int kLanes = kRegisterBytes / 8;
  using Narrow = typename detail::RegisterOf<float, kRegisterBytes / 2>::type;
  Vector<double> result;
  for (int i = 0; i < kParts; ++i) {
    Narrow narrow;
    std::memcpy(&narrow, source + i * kLanes, sizeof(narrow));
    result.part[i] = __builtin_convertvector(narrow, Vector<double>::Register);
  }
  return result;
}

/// Lanes 1, 0, 3, 2 and so on.
CUOP_LANES Vector<double> swapped_pairs(const Vector<double>& a) {
  return each<double>(
      [](const auto& x) {
#if defined(__AVX512F__)
        return __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6);
#elif defined(__AVX__)
        return __builtin_shufflevector(x, x, 1, 0, 3, 2);
#else
        return __builtin_shufflevector(x, x, 1, 0);
#endif
      },
      a);
}

/// Each of the first half of numbers with that of the second half, until `Count` are left in front.
template <int Count, class T, int N, class Combine>
CUOP_LANES void fold_halves(T (&part)[N], Combine&& combine) {
  for (int half = N / 2; half >= Count; half /= 2) {
    for (int i = 0; i < half; ++i) part[i] = combine(part[i], part[i + half]);
  }
}

/// The lanes folded by halves, in the same order on every machine.
template <class T, class Combine>
CUOP_LANES T fold(const Vector<T>& value, Combine&& combine) {
  T lane[kCount<T>];
  std::memcpy(lane, &value, sizeof(lane));
  fold_halves<1>(lane, combine);
  return lane[0];
}

#undef CUOP_LANES

}  // namespace CUOP_ISA
}  // namespace cuop::lanes

#endif  // CUOP_ISA
