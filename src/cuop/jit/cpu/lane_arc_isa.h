// acos of float in stages, the root first, and asin of double.
#pragma once

#include "cuop/jit/cpu/lane_forms_isa.h"

#ifdef CUOP_HAS_LANE_FORMS
#include "cuop/jit/kernels/accurate/inverse_circular.h"

namespace cuop::jit {
namespace {

/// From pi/2 by w = -x, beyond 1/2 from 0 or pi by w = 2 sqrt(z) with the sign of x: base + w +
/// w z P(z). What the root is rounded by is made good with 1 / w from the difference of the bits.
/// Below 1 ulp, tried on all arguments.
template <>
struct LaneForm<fn::Acos, float> {
  using C = accurate::Coefficients<float>;
  static constexpr int kApart = 6;
  struct Stage {
    Lanes z, root;
  };
  [[gnu::always_inline]] static void first(Lanes x, Stage& stage, Lanes&) {
    const Lanes half = minus_product(size_of(x), lanes(0.5f), lanes(0.5f));
    const Lanes z = smaller(x * x, half);
    stage = {z, root_of(z)};
  }
  [[gnu::always_inline]] static Lanes last(const Stage& stage, Lanes x) {
    constexpr float kRest = C::kHalfPiRest / C::kHalfPi;
    const Lanes z = stage.z, root = stage.root;
    const auto is_large = chosen_beyond(size_of(x), 0.5f);
    const Lanes w = selected(is_large, either(root + root, sign_of(x)), -x);
    const Lanes far = by_sign(x, Lanes{}, lanes(2 * C::kHalfPi));
    const Lanes base = selected(is_large, far, lanes(C::kHalfPi));
    const Lanes high = base + w, lost = fma(base, lanes(kRest), w - (high - base));
    const auto inverse = (Lanes)(0x7ef127eau - (LaneBitsOf<float>)w);
    const Lanes low = fma(minus_product(root, root, z), inverse, lost);
    return high + fma(w * z, horner<0, 1>(C::kAsin, z), low);
  }
};

#ifdef __AVX512F__
/// sqrt(x) of 0 or from 2^-1000 on, by steps of Newton's from the processor's estimate of 1 /
/// sqrt(x). The second one leaves less than an ulp; the third rounds as sqrt does, but for results
/// next to halfway between two doubles. 11 operations, where a root of eight doubles takes as long
/// as 48.
[[gnu::always_inline]] inline DoubleLanes quick_root_of(DoubleLanes x) {
  const DoubleLanes estimate = _mm512_maskz_rsqrt14_pd(static_cast<__mmask8>(kAll), x);
  const DoubleLanes inverse = smaller(lanes(0x1p500), estimate);  // of 0 that is infinite
  const DoubleLanes root = x * inverse, half = inverse * lanes(0.5);
  const DoubleLanes lack = minus_product(root, half, lanes(0.5));
  const DoubleLanes better = fma(root, lack, root), better_half = fma(half, lack, half);
  const DoubleLanes best = fma(minus_product(better, better, x), better_half, better);
  return fma(minus_product(best, best, x), better_half, best);
}
#else
[[gnu::always_inline]] inline DoubleLanes quick_root_of(DoubleLanes x) { return root_of(x); }
#endif

/// As accurate::asin, whose bits these are: of what is chosen by lanes, fewer operations.
template <>
struct LaneForm<fn::Asin, double> {
  using V = DoubleLanes;
  using C = accurate::Coefficients<double>;
  [[gnu::always_inline]] static V apply(V x) {
    const V size = size_of(x);
    const auto is_large = chosen_beyond(size, 0.5);
    const V z = smaller(x * x, minus_product(size, lanes(0.5), lanes(0.5))), square = z * z;
    const V w = selected(is_large, quick_root_of(z) * lanes(-2.0), size);
    const V high = added(is_large, w, C::kHalfPi), back = added(is_large, high, -C::kHalfPi);
    const V low = added(is_large, w - back, C::kHalfPiRest);
    const V p = fma(horner<1, 2>(C::kAsin, square), z, horner<0, 2>(C::kAsin, square));
    return with_sign(high + fma(w * z, p, low), x);
  }
};

}  // namespace
}  // namespace cuop::jit
#endif
