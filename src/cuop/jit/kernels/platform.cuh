// Kernel text under NVRTC: what prelude.h needs and CUDA's built-in functions do not give. Nothing
// here includes a header, which would cost more time than compiling the kernel does.
#pragma once

#define CUOP_FN __device__ __forceinline__
/// Of what is seldom needed and would make every caller longer.
#define CUOP_SELDOM_FN static __device__ __attribute__((noinline))
/// Before a loop that is to stay one: registers are dearer than its branch.
#define CUOP_ROLLED _Pragma("unroll 1")

using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;

namespace cuop::jit {

/// As std::complex: the real part first, without gaps, aligned as a whole.
template <class R>
struct alignas(2 * sizeof(R)) Complex {
  R re, im;

  Complex() = default;
  CUOP_FN constexpr Complex(R real_part, R imaginary_part = R(0))
      : re(real_part), im(imaginary_part) {}
  template <class Other>
  CUOP_FN constexpr explicit Complex(const Complex<Other>& other)
      : re(static_cast<R>(other.re)), im(static_cast<R>(other.im)) {}

  CUOP_FN constexpr R real() const { return re; }
  CUOP_FN constexpr R imag() const { return im; }

  friend CUOP_FN Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  friend CUOP_FN Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  friend CUOP_FN Complex operator*(Complex a, Complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  friend CUOP_FN Complex operator-(Complex a) { return {-a.re, -a.im}; }
  friend CUOP_FN bool operator==(Complex a, Complex b) { return a.re == b.re && a.im == b.im; }
  friend CUOP_FN bool operator!=(Complex a, Complex b) { return !(a == b); }
};

namespace math {
inline constexpr double infinity = __builtin_bit_cast(double, 0x7ff0000000000000ull);
inline constexpr double nan = __builtin_bit_cast(double, 0x7ff8000000000000ull);
inline constexpr bool has_fast_fma = true;
CUOP_FN float fma(float x, float y, float z) { return ::fmaf(x, y, z); }
CUOP_FN double fma(double x, double y, double z) { return ::fma(x, y, z); }
CUOP_FN double ldexp(double x, int exponent) { return ::ldexp(x, exponent); }
}  // namespace math

/// The 16-bit floats as they lie in memory; arithmetic on them happens in float.
struct Half {
  uint16_t bits;
  CUOP_FN operator float() const {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
};
struct BFloat16 {
  uint16_t bits;
  CUOP_FN operator float() const {
    return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
  }
};

/// To the nearest, ties to even.
template <class T>
CUOP_FN T narrowed(float value);
template <>
CUOP_FN Half narrowed<Half>(float value) {
  Half result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
}
template <>
CUOP_FN BFloat16 narrowed<BFloat16>(float value) {
  BFloat16 result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
}

}  // namespace cuop::jit
