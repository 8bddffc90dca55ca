// sin and cos of float where vectors have eight of them.
#pragma once

#include "cuop/jit/cpu/lane_forms_isa.h"

#if defined(CUOP_HAS_LANE_FORMS) && !defined(__AVX512F__)
#include "cuop/jit/cpu/lane_coefficients.h"
#include "cuop/jit/kernels/accurate/fused_circular.h"

namespace cuop::jit {
namespace {

/// A bit of each lane where |x| > most, and of NaN.
[[gnu::always_inline]] inline int not_within(Lanes x, float most) {
  return _mm256_movemask_ps(_mm256_cmp_ps(size_of(x), lanes(most), _CMP_NLE_UQ));
}

/// rows[First] + rows[First + 1] s.
template <int First, int Count>
[[gnu::always_inline]] inline Lanes linear(const float (&rows)[Count][8], Lanes shifted, Lanes s) {
  return fma(of_interval(rows[First + 1], shifted), s, of_interval(rows[First], shifted));
}

/// sin(x + quarters pi/2) by x = h pi/8 + s - excess: base + (s slope + s^2 P(s)), of which
/// the interval is h in eighths of a half turn. Below 1 ulp, tried on all arguments.
template <int Quarters>
[[gnu::always_inline]] inline Lanes eighth_turn_sine(Lanes x) {
  using C = SineIntervals;
  // The last three bits are 4 where the result is nearly 0, and the fourth one is its sign.
  constexpr float kWhole = accurate::Format<float>::kWhole + 4 * (Quarters + 1);
  const Lanes shifted = fma(x, lanes(C::kPerSpacing), lanes(kWhole)), h = shifted - lanes(kWhole);
  const Lanes a = _mm256_fnmadd_ps(h, lanes(C::kSpacingA), x), s = a - h * lanes(C::kSpacingB);
  const Lanes excess = fma(h, lanes(C::kSpacingC), fma(h, lanes(C::kSpacingB), s - a));
  const Lanes z = s * s, low = linear<0>(C::kRest, shifted, s);
  const Lanes p = fma(z, linear<2>(C::kRest, shifted, s), low);
  const Lanes rest = _mm256_fmsub_ps(z, p, excess);
  const Lanes part = fma(s, of_interval(C::kSlope, shifted), rest);
  const Lanes y = of_interval(C::kBase, shifted) + part;
  const LaneBitsOf<float> sign = ((LaneBitsOf<float>)shifted << 28) & kSignBit<Lanes>;
  return (Lanes)((LaneBitsOf<float>)y ^ sign);
}
template <>
struct LaneForm<fn::Sin, float> {
  [[gnu::always_inline]] static int unsure(Lanes x) {
    return not_within(x, accurate::kMostFused<float>);
  }
  [[gnu::always_inline]] static Lanes apply(Lanes x) { return eighth_turn_sine<0>(x); }
};
template <>
struct LaneForm<fn::Cos, float> {
  [[gnu::always_inline]] static int unsure(Lanes x) {
    return not_within(x, accurate::kMostFused<float>);
  }
  [[gnu::always_inline]] static Lanes apply(Lanes x) { return eighth_turn_sine<1>(x); }
};

}  // namespace
}  // namespace cuop::jit
#endif
