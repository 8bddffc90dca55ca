// Operations on integers whose second argument is one number for a whole block, where that is worth
// preparing: quotients as products and shifts (Granlund and Montgomery, "Division by invariant
// integers using multiplication", 1994), and powers.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "cuop/jit/cpu/two_stages_isa.h"
#include "cuop/jit/kernels/arithmetic.h"

namespace cuop::jit {
namespace {

/// The upper half of a product. AVX-512 has none of 64 bits, but vectors of the halves' products.
template <class U>
[[gnu::always_inline]] inline U upper_product(U a, U b) {
#ifdef __AVX512F__
  if constexpr (sizeof(U) == 8) {
    constexpr uint64_t kLow = 0xffffffff;
    const uint64_t low = (a & kLow) * (b & kLow), one = (a & kLow) * (b >> 32);
    const uint64_t other = (a >> 32) * (b & kLow), high = (a >> 32) * (b >> 32);
    const uint64_t middle = (low >> 32) + (one & kLow) + (other & kLow);
    return high + (one >> 32) + (other >> 32) + (middle >> 32);
  }
#endif
  using Wide = std::conditional_t<sizeof(U) == 8, unsigned __int128,
                                  std::conditional_t<sizeof(U) == 4, uint64_t, uint32_t>>;
  return static_cast<U>((Wide{a} * b) >> (8 * sizeof(U)));
}

/// Divides numbers of type U by one that is not 0.
template <class U>
class Reciprocal {
  static constexpr int kBits = 8 * sizeof(U);

 public:
  explicit Reciprocal(U by) {
    const auto digits = static_cast<int>(std::bit_width(static_cast<U>(by - 1)));
    using Wider = unsigned __int128;
    multiplier_ = static_cast<U>((((Wider{1} << digits) - by) << kBits) / by + 1);
    first_ = digits > 0 ? 1 : 0;
    second_ = digits > 0 ? digits - 1 : 0;
  }
  [[gnu::always_inline]] U quotient(U n) const {
    const U high = upper_product(n, multiplier_);
    return static_cast<U>(
        static_cast<U>(high + static_cast<U>(static_cast<U>(n - high) >> first_)) >> second_);
  }

 private:
  U multiplier_;
  int first_, second_;
};
/// Of 8 bits by a multiplier of 16, which is exact; there are no shifts of vectors of bytes.
template <>
class Reciprocal<uint8_t> {
 public:
  explicit Reciprocal(uint8_t by)
      : multiplier_(static_cast<uint16_t>(by == 1 ? 0 : 0xffff / by + 1)),
        whole_(by == 1 ? 0xff : 0) {}
  [[gnu::always_inline]] uint8_t quotient(uint8_t n) const {
    return static_cast<uint8_t>(upper_product<uint16_t>(n, multiplier_) | (n & whole_));
  }

 private:
  uint16_t multiplier_;
  uint8_t whole_;
};

/// floor(a / b) or what it leaves of a; both are 0 where b is.
template <class F, class T>
void run_divided_by(void* out, const void* first, const void* second, const void*, int64_t n) {
  promise_whole_vectors(n);
  using U = std::make_unsigned_t<T>;
  const auto* a = static_cast<const T*>(first);
  const T b = *static_cast<const T*>(second);
  auto* result = static_cast<T*>(out);
  const auto run = [&](const auto& quotient) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const U q = quotient(a[i]);
      if constexpr (std::is_same_v<F, fn::FloorDivide>) {
        result[i] = static_cast<T>(q);
      } else {
        result[i] = static_cast<T>(
            static_cast<U>(static_cast<U>(a[i]) - static_cast<U>(WrapType<T>{q} * U(b))));
      }
    }
  };
  if (b == 0) {
    for (int64_t i = 0; i < n; ++i) result[i] = 0;
    return;
  }
  if constexpr (!std::is_signed_v<T>) {
    const Reciprocal<U> by(b);
    run([by](T x) { return by.quotient(x); });
  } else if (b > 0) {
    // -1 - x of a negative x, whose quotient so becomes one rounded down.
    const Reciprocal<U> by(static_cast<U>(b));
    run([by](T x) {
      const auto sign = static_cast<U>(x < 0 ? -1 : 0);
      return static_cast<U>(by.quotient(static_cast<U>(static_cast<U>(x) ^ sign)) ^ sign);
    });
  } else {
    // The same of -x, which of the lowest number has no sign bit to go by.
    const Reciprocal<U> by(static_cast<U>(0 - static_cast<U>(b)));
    run([by](T x) {
      const auto sign = static_cast<U>(x > 0 ? -1 : 0);
      const auto opposite = static_cast<U>(0 - static_cast<U>(x));
      return static_cast<U>(by.quotient(static_cast<U>(opposite ^ sign)) ^ sign);
    });
  }
}

/// a^b: the squares of a few elements at a time.
template <class T>
void run_power_of(void* out, const void* first, const void* second, const void*, int64_t n) {
  promise_whole_vectors(n);
  using W = WrapType<T>;
  const auto* a = static_cast<const T*>(first);
  const T b = *static_cast<const T*>(second);
  auto* result = static_cast<T*>(out);
  if (std::is_signed_v<T> && b < 0) {
    for (int64_t i = 0; i < n; ++i) result[i] = fn::Power::apply(a[i], b);
    return;
  }
  for (int64_t i = 0; i < n; i += kBlockMultiple) {
    W power[kBlockMultiple], base[kBlockMultiple];
    for (int k = 0; k < kBlockMultiple; ++k) {
      power[k] = 1;
      base[k] = wrap(a[i + k]);
    }
    for (W left = wrap(b); left != 0; left >>= 1) {
      const W is_odd = left & 1;
      for (int k = 0; k < kBlockMultiple; ++k) {
        power[k] *= is_odd != 0 ? base[k] : W(1);
        base[k] *= base[k];
      }
    }
    for (int k = 0; k < kBlockMultiple; ++k) result[i + k] = wrapped<T>(power[k]);
  }
}

template <class F, class T>
void run_with_number_behind(void* out, const void* a, const void* b, const void* c, int64_t n) {
  if constexpr (std::is_same_v<F, fn::Power>) {
    run_power_of<T>(out, a, b, c, n);
  } else {
    run_divided_by<F, T>(out, a, b, c, n);
  }
}

}  // namespace
}  // namespace cuop::jit
