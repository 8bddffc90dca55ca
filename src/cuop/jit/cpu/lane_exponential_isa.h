// Exponential functions of vectors of AVX-512, whose permutations fetch one of 16 powers of two and
// which multiply by a power of two in one operation, also where the result is subnormal.
#pragma once

#include "cuop/jit/cpu/lane_logarithm_isa.h"

#if defined(CUOP_HAS_LANE_FORMS) && defined(__AVX512F__)
#include <concepts>

#include "cuop/jit/cpu/exp_tables.h"
#include "cuop/jit/kernels/accurate/quick.h"

namespace cuop::jit {
namespace {

/// Of each lane the number that the last four bits of `shifted` name.
[[gnu::always_inline]] inline DoubleLanes of_interval(const double (&table)[16],
                                                      DoubleLanes shifted) {
  return of_row(table, _mm512_castpd_si512(shifted));
}
template <class T>
constexpr T kSixteenths = accurate::Format<T>::kWhole / 16;

/// x brought to where no result is a number between the least and the largest one.
template <class V>
[[gnu::always_inline]] inline V within_powers(V x, NumberOf<V> low, NumberOf<V> high) {
  return at_most(at_least(x, low), high);
}
/// (T + (T p + what T lacks)) 2^floor(n).
template <class V>
[[gnu::always_inline]] inline V power_result(V shifted, V n, V p) {
  using Rows = PowerRows<NumberOf<V>>;
  const V power = of_interval(Rows::kPowers, shifted);
  return times_power(power + fma(power, p, of_interval(Rows::kLacks, shifted)), n);
}

/// Of float below 0.57 ulp, of subnormal results 0.77, tried on all arguments; of double below
/// 0.72, tried on millions; monotone.
template <std::floating_point T>
struct LaneForm<fn::Exp2, T> {
  using V = LanesOf<T>;
  [[gnu::always_inline]] static V apply(V x) {
    const V shifted = x + lanes(kSixteenths<T>), n = shifted - lanes(kSixteenths<T>);
    const V r =
        larger(x - n, lanes(T(-1) / 32));  // a number of infinities too, whose power n makes
    const V square = (r * r) * horner<0, 1>(PowerRows<T>::kRestOfTwo, r);
    return power_result(shifted, n, fma(r, lanes(accurate::Coefficients<T>::kLn2), square));
  }
};
template <std::floating_point T>
struct LaneForm<fn::Exp, T> {
  using V = LanesOf<T>;
  using C = accurate::Coefficients<T>;
  [[gnu::always_inline]] static V apply(V given) {
    constexpr bool kIsFloat = sizeof(T) == 4;
    const V x = within_powers(given, kIsFloat ? T(-110) : T(-760), kIsFloat ? T(90) : T(710));
    const V shifted = fma(x, lanes(C::kInvLn2), lanes(kSixteenths<T>));
    const V n = shifted - lanes(kSixteenths<T>);
    const V high = minus_product(n, lanes(C::kLn2High), x);
    const V r = minus_product(n, lanes(C::kLn2Low), high);
    return power_result(shifted, n, fma(r * r, horner<0, 1>(PowerRows<T>::kRest, r), r));
  }
};

/// Each row's power of two with an even last bit, and what it lacks, by it; both negative.
struct EvenPowers {
  float powers[16], lacks[16];
  constexpr EvenPowers() : powers(), lacks() {
    for (int i = 0; i < 16; ++i) {
      const float power = PowerRows<float>::kPowers[i];
      const float even = std::bit_cast<float>(std::bit_cast<uint32_t>(power) & ~1u);
      powers[i] = -even;
      lacks[i] = (even - power - PowerRows<float>::kLacks[i]) / even;
    }
  }
};
constexpr EvenPowers kEvenPowers;
/// (2^n - 1) + 2^n (e^r - 1) of x = n ln 2 + r, n a multiple of 1/16, but 0 up to 1/32: beyond, the
/// second term is so much smaller than the result that what rounds it counts little. The nearest
/// float of ln 2 leaves r without an error. Of n < -1 the 1 comes last, as 2^n - 1 has too many
/// digits; from n = 24 on it has them too and, even as 2^n is, becomes 2^n: what ln 2 lacks is
/// 2^-28 / 24 more to make good a part of that. Terms are negative and subtracted so that 0 keeps
/// its sign. Below 1 ulp and monotone, tried on all arguments.
template <>
struct LaneForm<fn::Expm1, float> {
  static constexpr float kRest[] = {-0.5f, -0.16667323f, -1.0f / 24};
  [[gnu::always_inline]] static int unsure(Lanes x) {
    return not_within(x, accurate::kMostQuick<float>);
  }
  [[gnu::always_inline]] static Lanes apply(Lanes x) {
    using C = accurate::Coefficients<float>;
    constexpr float kLn2Lacks = C::kLn2Rest + 0x1p-28f / 24;
    const ChosenLanes far = chosen_beyond(size_of(x), 0.03125f);
    const Lanes whole = lanes(kSixteenths<float>);
    const Lanes shifted = _mm512_mask3_fmadd_ps(x, lanes(C::kInvLn2), whole, far);
    const Lanes n = shifted - whole, r = minus_product(n, lanes(C::kLn2), x);
    const Lanes rest = fma(n, lanes(kLn2Lacks), of_interval(kEvenPowers.lacks, shifted));
    const Lanes p = r - fma(r, fma(r, horner<0, 1>(kRest, r), rest), rest);
    const Lanes power = times_power(of_interval(kEvenPowers.powers, shifted), n);
    const ChosenLanes early = _mm512_cmp_ps_mask(n, lanes(-1.0f), _CMP_NLT_UQ);
    const Lanes sum = _mm512_fnmsub_ps(power, p, added(early, power, 1.0f));
    return added(~early, sum, -1.0f);
  }
};

/// For n = k + row / 16 halves of 2^(n - k) and of what it lacks, by it, with half of what the
/// power of -n lacks, as if that were 1 / 2^n; and half of 2^(-n - floor(-n)).
template <class T>
struct HalvedPowers {
  T powers[16], lacks[16], inverses[16];
  constexpr HalvedPowers() : powers(), lacks(), inverses() {
    for (int i = 0; i < 16; ++i) {
      const T p = PowerRows<T>::kPowers[i], q = PowerRows<T>::kPowers[(16 - i) % 16];
      powers[i] = p / 2;
      lacks[i] = (PowerRows<T>::kLacks[i] + PowerRows<T>::kLacks[(16 - i) % 16] / (2 * q * p)) / p;
      inverses[i] = q / 2;
    }
  }
};
template <class T>
constexpr HalvedPowers<T> kHalvedPowers;
/// cosh(r) - 1, of z = r^2, and sinh(r) for |r| up to ln(2) / 32.
[[gnu::always_inline]] inline Lanes short_even(Lanes z) {
  return z * lanes(0.5f + 0.83f * 0.000469f / 24);  // and nearly what z^2 / 24 adds
}
[[gnu::always_inline]] inline DoubleLanes short_even(DoubleLanes z) {
  return z * fma(z, fma(z, lanes(1.0 / 720), lanes(1.0 / 24)), lanes(0.5));
}
[[gnu::always_inline]] inline Lanes short_odd(Lanes r, Lanes z) {
  return fma(r * z, lanes(1.0f / 6), r);
}
[[gnu::always_inline]] inline DoubleLanes short_odd(DoubleLanes r, DoubleLanes z) {
  const DoubleLanes rest = fma(z, fma(z, lanes(1.0 / 5040), lanes(1.0 / 120)), lanes(1.0 / 6));
  return fma(r * z, rest, r);
}
/// By |x| = n ln 2 + r, n a multiple of 1/16, and the halves p and q of 2^n and 2^-n: p + q + (p +
/// q) (cosh r - 1) + (p - q) sinh r, but for half of what q lacks, an eighth of an ulp. Of float
/// below 0.67 ulp and monotone, tried on all arguments; of double below 0.7, tried on millions.
template <std::floating_point T>
struct LaneForm<fn::Cosh, T> {
  using V = LanesOf<T>;
  [[gnu::always_inline]] static V apply(V x, V& doubt) {
    using C = accurate::Coefficients<T>;
    constexpr T kDoubtful = sizeof(T) == 4 ? T(1.0 / 64) : T(1.0 / 512);
    const auto& rows = kHalvedPowers<T>;
    const V size = size_of(x), whole = lanes(kSixteenths<T>);
    const V up = fma(size, lanes(C::kInvLn2), whole), n = up - whole;
    doubt = either(doubt, n * lanes(kDoubtful));
    const V high = minus_product(n, lanes(C::kLn2High), size);
    const V r = minus_product(n, lanes(C::kLn2Low), high), z = r * r;
    const V p = times_power(of_interval(rows.powers, up), n);
    const V q = times_power(of_interval(rows.inverses, up), whole - up);
    const V sum = p + q, lost = (p - sum) + q;
    const V less = fma(p, of_interval(rows.lacks, up), lost);
    return sum + fma(p - q, short_odd(r, z), fma(sum, short_even(z), less));
  }
};

}  // namespace
}  // namespace cuop::jit
#endif
