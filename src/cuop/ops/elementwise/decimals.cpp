#include "cuop/ops/elementwise/decimals.h"

#include <algorithm>
#include <cmath>

#include "cuop/core/trace.h"
#include "cuop/jit/fusion.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"

namespace cuop {

namespace {

constexpr int64_t kMostPlaces = 324;  // of the smallest double
constexpr int64_t kPlaces32 = 10;     // 10^10 is a float32

Tensor rounded_floats(const Tensor& x, int64_t decimals) {
  const double power = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  if (std::isinf(power)) return decimals > 0 ? clone(x) : where(isfinite(x), multiply(x, 0.0), x);
  const bool is_wide = x.dtype() == DType::kFloat64 || std::abs(decimals) > kPlaces32;
  const auto rounded = fuse([&] {
    const Tensor wide = cast(x, is_wide ? DType::kFloat64 : DType::kFloat32);
    if (decimals < 0) return cast(multiply(round(divide(wide, power)), power), x.dtype());
    const Tensor scaled = multiply(wide, power);
    // What is larger has no digits in such places; nor has NaN.
    const Tensor has_places = less(abs(scaled), is_wide ? 0x1p52 : 0x1p23);
    return cast(where(has_places, divide(round(scaled), power), wide), x.dtype());
  });
  return rounded();
}

/// Multiples of 10^places, halves to the even one.
Tensor rounded_integers(const Tensor& x, int64_t places) {
  const IntegerRange range = integer_range(x.dtype());
  uint64_t unit = 1;
  for (int64_t i = 0; i < places; ++i) {
    // Less than half of the unit, or nearer to a multiple that the dtype does not hold.
    if (unit > range.high / 10) return zeros(x.shape(), x.dtype(), x.device());
    unit *= 10;
  }
  const auto rounded = fuse([&] {
    const Tensor below = floor_divide(x, unit), rest = subtract(x, multiply(below, unit));
    const Tensor is_odd = not_equal(bitwise_and(below, 1), 0);
    const Tensor is_up =
        logical_or(greater(rest, unit / 2), logical_and(equal(rest, unit / 2), is_odd));
    return multiply(add(below, cast(is_up, x.dtype())), unit);
  });
  return rounded();
}

/// The same of any dtype but bool.
Tensor rounded(const Tensor& x, int64_t decimals) {
  if (is_complex(x.dtype())) {
    const Tensor result = empty(x.shape(), x.dtype(), x.device());
    copy_into(as_real(result), rounded_floats(as_real(x), decimals));
    return result;
  }
  if (is_floating(x.dtype())) return rounded_floats(x, decimals);
  return decimals > 0 ? clone(x) : rounded_integers(x, -decimals);
}

}  // namespace

Tensor round_decimals(const Tensor& x, int64_t decimals, const Tensor* out) {
  if (decimals == 0 || is_bool(x.dtype())) return round(x, out);  // which refuses bool
  const trace::Span span("round", "op");
  const Tensor result = rounded(x, std::clamp(decimals, -kMostPlaces, kMostPlaces));
  if (out == nullptr) return result;
  copy_into(prepare_output("round", out, x.shape(), x.dtype(), x.device()), result);
  return *out;
}

}  // namespace cuop
