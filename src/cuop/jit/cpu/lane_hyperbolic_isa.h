// tanh of vectors of AVX-512: polynomials on 32 intervals instead of a division.
#pragma once

#include "cuop/jit/cpu/lane_forms_isa.h"

#if defined(CUOP_HAS_LANE_FORMS) && defined(__AVX512F__)
#include "cuop/jit/cpu/lane_coefficients.h"

namespace cuop::jit {
namespace {

/// value + (s slope + s P(s)) by |x| = middle + s, the interval's, which the first digits of
/// |x| + 5/8 name. Below 0.9 ulp and monotone, tried on all arguments.
template <>
struct LaneForm<fn::Tanh, float> {
  [[gnu::always_inline]] static Lanes apply(Lanes x) {
    using C = TanhIntervals;
    const Lanes a = at_most(size_of(x), 9.1f);  // from where the result rounds to 1
    const auto digits = (Lanes)((LaneBitsOf<float>)(a + lanes(C::kShift)) >> 20);
    const Lanes s = a - of_interval(C::kMiddle, digits);
    const Lanes part = fma(s, of_interval(C::kSlope, digits), s * horner(C::kRest, digits, s));
    return either(of_interval(C::kValue, digits) + part, sign_of(x));
  }
};

}  // namespace
}  // namespace cuop::jit
#endif
