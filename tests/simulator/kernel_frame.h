// The first text of every kernel that the simulator's compiler makes: what NVRTC knows without a
// header, the checks of each access to memory, and the table by which the driver finds the kernel.
#pragma once

#include "tests/simulator/kernel_interface.h"

namespace cuop::simulator {
// In .data, not in .bss: that is the block's shared memory and nothing else.
[[gnu::used]] inline Running running{.clock = 1};
}  // namespace cuop::simulator

#include "tests/simulator/device_text.h"

using size_t = unsigned long;
using uint3 = ::cuop::simulator::Index3;
using dim3 = ::cuop::simulator::Index3;

#define CUOP_MATH_1(name)                   \
  extern "C" double name(double) noexcept;  \
  extern "C" float name##f(float) noexcept; \
  inline float name(float x) { return name##f(x); }
#define CUOP_MATH_2(name)                          \
  extern "C" double name(double, double) noexcept; \
  extern "C" float name##f(float, float) noexcept; \
  inline float name(float x, float y) { return name##f(x, y); }
CUOP_MATH_1(acos)
CUOP_MATH_1(acosh)
CUOP_MATH_1(asin)
CUOP_MATH_1(asinh)
CUOP_MATH_1(atan)
CUOP_MATH_1(atanh)
CUOP_MATH_1(cbrt)
CUOP_MATH_1(ceil)
CUOP_MATH_1(cos)
CUOP_MATH_1(cosh)
CUOP_MATH_1(erf)
CUOP_MATH_1(erfc)
CUOP_MATH_1(exp)
CUOP_MATH_1(exp2)
CUOP_MATH_1(expm1)
CUOP_MATH_1(fabs)
CUOP_MATH_1(floor)
CUOP_MATH_1(lgamma)
CUOP_MATH_1(log)
CUOP_MATH_1(log10)
CUOP_MATH_1(log1p)
CUOP_MATH_1(log2)
CUOP_MATH_1(rint)
CUOP_MATH_1(round)
CUOP_MATH_1(sin)
CUOP_MATH_1(sinh)
CUOP_MATH_1(sqrt)
CUOP_MATH_1(tan)
CUOP_MATH_1(tanh)
CUOP_MATH_1(tgamma)
CUOP_MATH_1(trunc)
CUOP_MATH_2(atan2)
CUOP_MATH_2(copysign)
CUOP_MATH_2(fmax)
CUOP_MATH_2(fmin)
CUOP_MATH_2(fmod)
CUOP_MATH_2(hypot)
CUOP_MATH_2(nextafter)
CUOP_MATH_2(pow)
#undef CUOP_MATH_1
#undef CUOP_MATH_2
extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
extern "C" double ldexp(double, int) noexcept;
extern "C" float ldexpf(float, int) noexcept;
inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
inline float ldexp(float x, int exponent) { return ldexpf(x, exponent); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __fdividef(float x, float y) { return x / y; }
template <class T>
T min(T x, T y) {
  return y < x ? y : x;
}
template <class T>
T max(T x, T y) {
  return x < y ? y : x;
}

extern "C" {
// From the linker: the binary begins, its zeroed data begins, it ends.
[[gnu::visibility("hidden")]] extern unsigned char __ehdr_start[], __bss_start[], _end[];
}

namespace cuop::simulator {

// --- the conversions that kernel text writes as PTX ----------------------------------------------

inline constexpr unsigned short kNarrowNan = 0x7fff;  // what a GPU makes of every NaN

inline float half_to_float(unsigned short bits) {
  return static_cast<float>(__builtin_bit_cast(_Float16, bits));
}
inline unsigned short float_to_half(float value) {
  if (value != value) return kNarrowNan;
  return __builtin_bit_cast(unsigned short, static_cast<_Float16>(value));
}
inline unsigned short float_to_bfloat16(float value) {
  if (value != value) return kNarrowNan;
  const unsigned bits = __builtin_bit_cast(unsigned, value);
  return static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// --- checks --------------------------------------------------------------------------------------

CUOP_UNCHECKED inline bool is_there(unsigned long at, unsigned long bytes) {
  const unsigned long last = at + bytes - 1;
  if (last >= running.window_bytes) return false;
  // What begins in one part and ends in the next needs all of the first.
  const unsigned long first_part = at / kReachableGranule, last_part = last / kReachableGranule;
  const unsigned long needed =
      first_part == last_part ? last % kReachableGranule + 1 : kReachableGranule;
  return (running.reachable[first_part] & running.device_bit) != 0 &&
         (running.reachable[last_part] & running.device_bit) != 0 &&
         needed <= running.present[first_part] &&
         last % kReachableGranule < running.present[last_part];
}

/// A kernel may touch memory that its device reaches, its block's shared memory and its own stack.
CUOP_UNCHECKED inline void check_access(Access access, const void* data, unsigned long bytes) {
  const auto address = reinterpret_cast<unsigned long>(data);
  if (address - running.stacks < running.stacks_bytes) return;
  const unsigned long at = address - running.window;
  const bool is_binary = data >= __ehdr_start && data < _end;
  const bool is_allowed = at < running.window_bytes
                              ? is_there(at, bytes)
                              : is_binary || running.is_registered(data, bytes);
  if (!is_allowed) running.refuse(access == Access::kRead ? "reads" : "writes", data, bytes);
  if (running.watch == nullptr || (is_binary && data < __bss_start)) return;
  running.watch(running.is_atomic ? Access::kAtomic : access, data, bytes);
}

// --- what the driver finds -----------------------------------------------------------------------

template <unsigned long... Numbers>
struct Numbered {};

template <auto Kernel>
struct Entry;
template <class... Arguments, void (*Kernel)(Arguments...)>
struct Entry<Kernel> {
  static constexpr unsigned bytes[] = {sizeof(Arguments)..., 0};
  static void call(void** arguments) {
    unpack(arguments, Numbered<__integer_pack(sizeof...(Arguments))...>());
  }
  static constexpr KernelInfo info(unsigned max_threads) {
    return {
        &call, static_cast<int>(sizeof...(Arguments)), bytes, max_threads, &running, __bss_start,
        _end};
  }

 private:
  template <unsigned long... At>
  CUOP_UNCHECKED static void unpack([[maybe_unused]] void** arguments, Numbered<At...>) {
    Kernel(*static_cast<Arguments*>(arguments[At])...);
  }
};

}  // namespace cuop::simulator

// Called by the compiler before each access to memory that it does not know to be a variable's own.
extern "C" {
#define CUOP_CHECKED_SIZE(bytes)                                                     \
  CUOP_UNCHECKED void __asan_load##bytes##_noabort(void* data) {                     \
    ::cuop::simulator::check_access(::cuop::simulator::Access::kRead, data, bytes);  \
  }                                                                                  \
  CUOP_UNCHECKED void __asan_store##bytes##_noabort(void* data) {                    \
    ::cuop::simulator::check_access(::cuop::simulator::Access::kWrite, data, bytes); \
  }
CUOP_CHECKED_SIZE(1)
CUOP_CHECKED_SIZE(2)
CUOP_CHECKED_SIZE(4)
CUOP_CHECKED_SIZE(8)
CUOP_CHECKED_SIZE(16)
#undef CUOP_CHECKED_SIZE
CUOP_UNCHECKED void __asan_loadN_noabort(void* data, long bytes) {
  if (bytes > 0)
    ::cuop::simulator::check_access(::cuop::simulator::Access::kRead, data,
                                    static_cast<unsigned long>(bytes));
}
CUOP_UNCHECKED void __asan_storeN_noabort(void* data, long bytes) {
  if (bytes > 0)
    ::cuop::simulator::check_access(::cuop::simulator::Access::kWrite, data,
                                    static_cast<unsigned long>(bytes));
}
CUOP_UNCHECKED void __asan_handle_no_return() {}
CUOP_UNCHECKED void __ubsan_handle_type_mismatch_v1_abort(void*, void* data) {
  ::cuop::simulator::running.refuse("uses a misaligned address", data, 0);
}
CUOP_UNCHECKED void __ubsan_handle_out_of_bounds_abort(void*, void* index) {
  ::cuop::simulator::running.refuse("indexes an array beyond its end, with", index, 0);
}
}
