// The few names that kernel arithmetic is written in, so that the same functors compile on the host
// and by NVRTC, which has no standard headers. On the host atan2 and pow reach glibc's vector
// versions when a loop over them is vectorised (errors up to 4 ulp, special values as the scalar
// functions), which is why only *_isa.cpp files may run these functors over arrays.
#pragma once

#ifdef __CUDACC_RTC__
#include "cuop/jit/kernels/platform.cuh"
#else
#include "cuop/jit/kernels/platform_host.h"
#endif

namespace cuop::jit {

#ifndef CUOP_BLOCK_THREADS
#define CUOP_BLOCK_THREADS 0
#endif
/// Threads of a block: those that are asked for (block_threads in jit/build_options.h), or else the
/// usual number.
CUOP_FN constexpr int threads_or(int usual) {
  return CUOP_BLOCK_THREADS > 0 ? CUOP_BLOCK_THREADS : usual;
}
/// Of reductions and what is built in their frame (reduce.cuh).
inline constexpr int kReduceThreads = 256;
/// Steps of a cheap reduction whose loads a thread has on the way together.
inline constexpr int kStepsTogether = 4;

template <class T>
inline constexpr bool is_bool_type = false;
template <>
inline constexpr bool is_bool_type<bool> = true;
template <class T>
inline constexpr bool is_float_type = false;
template <>
inline constexpr bool is_float_type<float> = true;
template <>
inline constexpr bool is_float_type<double> = true;
template <class T>
inline constexpr bool is_complex_type = false;
template <class R>
inline constexpr bool is_complex_type<Complex<R>> = true;
template <class T>
inline constexpr bool is_integer_type =
    !is_bool_type<T> && !is_float_type<T> && !is_complex_type<T>;
template <class T>
inline constexpr bool is_signed_type = T(-1) < T(0);

namespace detail {
template <class T>
struct RealOf {
  using type = T;
};
template <class R>
struct RealOf<Complex<R>> {
  using type = R;
};
template <int Bytes>
struct UnsignedOfSize {
  using type = uint32_t;  // at least 32 bits: smaller ones would promote to signed int
};
template <>
struct UnsignedOfSize<8> {
  using type = uint64_t;
};
}  // namespace detail

template <class T>
using RealType = typename detail::RealOf<T>::type;
/// The type in which integers wrap around without undefined behaviour.
template <class T>
using WrapType = typename detail::UnsignedOfSize<static_cast<int>(sizeof(T))>::type;

template <class T>
CUOP_FN T wrapped(WrapType<T> value) {
  return static_cast<T>(value);
}
template <class T>
CUOP_FN WrapType<T> wrap(T value) {
  return static_cast<WrapType<T>>(value);
}
template <class T>
CUOP_FN bool truth(T value) {
  return value != T(0);
}

namespace detail {
template <class Bits, class Condition, class T>
CUOP_FN T choose_bits(Condition condition, T a, T b) {
  const auto mask = static_cast<Bits>(-static_cast<Bits>(condition));
  return __builtin_bit_cast(T, static_cast<Bits>((__builtin_bit_cast(Bits, a) & mask) |
                                                 (__builtin_bit_cast(Bits, b) & ~mask)));
}
}  // namespace detail

/// a where the condition (a bool, or 0 or 1) holds, else b, without a branch: compilers turn some
/// conditional expressions into jumps and then leave the loop unvectorised.
template <class Condition, class T>
CUOP_FN T choose(Condition condition, T a, T b) {
  if constexpr (is_complex_type<T>) {
    return {choose(condition, a.real(), b.real()), choose(condition, a.imag(), b.imag())};
  } else if constexpr (sizeof(T) == 1) {
    return detail::choose_bits<uint8_t>(condition, a, b);
  } else if constexpr (sizeof(T) == 2) {
    return detail::choose_bits<uint16_t>(condition, a, b);
  } else if constexpr (sizeof(T) == 4) {
    return detail::choose_bits<uint32_t>(condition, a, b);
  } else {
    return detail::choose_bits<uint64_t>(condition, a, b);
  }
}

namespace math {

CUOP_FN float atan2(float y, float x) { return ::atan2f(y, x); }
CUOP_FN double atan2(double y, double x) { return ::atan2(y, x); }
CUOP_FN float pow(float x, float y) { return ::powf(x, y); }
CUOP_FN double pow(double x, double y) { return ::pow(x, y); }

CUOP_FN float abs(float x) { return ::fabsf(x); }
CUOP_FN double abs(double x) { return ::fabs(x); }
CUOP_FN float ceil(float x) { return ::ceilf(x); }
CUOP_FN double ceil(double x) { return ::ceil(x); }
CUOP_FN float copysign(float x, float y) { return ::copysignf(x, y); }
CUOP_FN double copysign(double x, double y) { return ::copysign(x, y); }
CUOP_FN float floor(float x) { return ::floorf(x); }
CUOP_FN double floor(double x) { return ::floor(x); }
CUOP_FN float fmod(float x, float y) { return ::fmodf(x, y); }
CUOP_FN double fmod(double x, double y) { return ::fmod(x, y); }
// In double no square of a float overflows or loses its last bits.
CUOP_FN float hypot(float x, float y) {
  const bool is_infinite = abs(x) == float(infinity) || abs(y) == float(infinity);
  const double square = double(x) * double(x) + double(y) * double(y);
  return is_infinite ? float(infinity) : static_cast<float>(::sqrt(square));
}
CUOP_FN double hypot(double x, double y) { return ::hypot(x, y); }
CUOP_FN float nextafter(float x, float y) { return ::nextafterf(x, y); }
CUOP_FN double nextafter(double x, double y) { return ::nextafter(x, y); }
CUOP_FN float rint(float x) { return ::rintf(x); }
CUOP_FN double rint(double x) { return ::rint(x); }
CUOP_FN bool signbit(float x) { return ::copysignf(1.0f, x) < 0; }
CUOP_FN bool signbit(double x) { return ::copysign(1.0, x) < 0; }
CUOP_FN float sqrt(float x) { return ::sqrtf(x); }
CUOP_FN double sqrt(double x) { return ::sqrt(x); }
CUOP_FN float trunc(float x) { return ::truncf(x); }
CUOP_FN double trunc(double x) { return ::trunc(x); }

template <class T>
CUOP_FN bool is_nan(T x) {
  return x != x;
}
template <class T>
CUOP_FN bool is_inf(T x) {
  return abs(x) == T(infinity);
}

}  // namespace math

}  // namespace cuop::jit
