// tanh of vectors of AVX-512: polynomials on sixteen intervals instead of a division.
#pragma once

#include "cuop/jit/cpu/lane_forms_isa.h"

#if defined(CUOP_HAS_LANE_FORMS) && defined(__AVX512F__)
#include "cuop/jit/cpu/lane_coefficients.h"

namespace cuop::jit {
namespace {

/// value + (s slope + (s P(s) + what the value lacks)) by |x| = i 19/32 + s. Below 1 ulp and
/// monotone, tried on all arguments.
template <>
struct LaneForm<fn::Tanh, float> {
  [[gnu::always_inline]] static Lanes apply(Lanes x) {
    using C = TanhIntervals;
    constexpr float kWhole = accurate::Format<float>::kWhole;
    const Lanes a = at_most(size_of(x), 9.1f);  // from where the result rounds to 1
    const Lanes shifted = fma(a, lanes(C::kPerSpacing), lanes(kWhole));
    const Lanes s = fma(shifted - lanes(kWhole), lanes(-C::kSpacing), a);  // exact
    const Lanes rest = fma(s, horner(C::kRest, shifted, s), of_interval(C::kLack, shifted));
    const Lanes part = fma(s, of_interval(C::kSlope, shifted), rest);
    return either(of_interval(C::kValue, shifted) + part, sign_of(x));
  }
};

}  // namespace
}  // namespace cuop::jit
#endif
