#include "cuop/dist/exec/narrow.h"

#include "cuop/jit/fusion.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/matmul/matmul.h"
#include "cuop/ops/reduce/reduce.h"

namespace cuop::dist {
namespace {

/// Of the largest element of a line after scaling.
constexpr double kExponent = 14;

Shape lines_of(Shape shape, int axis) {
  if (!shape.empty()) shape[axis] = 1;
  return shape;
}

/// 2^exponents as two factors, neither of which overflows or is subnormal in float32 where the
/// exponent is that of any float32 line.
struct Factors {
  Tensor first;
  Tensor second;
};

Factors powers_of_two(const Tensor& exponents, DType dtype) {
  const Tensor half = floor(multiply(exponents, 0.5));
  return {exp2(cast(half, dtype)), exp2(cast(subtract(exponents, half), dtype))};
}

Tensor scaled(const Tensor& x, const Factors& factors) {
  return multiply(multiply(x, factors.first), factors.second);
}

/// Of each line the exponent of its scale.
Tensor scale_exponents(const Tensor& x, int axis) {
  const Tensor size = abs(x);
  const Tensor finite = where(isfinite(size), size, 0.0);
  const Tensor largest =
      x.ndim() == 0 ? finite : max(finite, Axes{static_cast<int64_t>(axis)}, true);
  // In float64, where subnormal numbers of float32 are ordinary ones.
  const Tensor exponent = floor(log2(cast(largest, DType::kFloat64)));
  const Tensor wanted = subtract(kExponent, exponent);
  return cast(where(greater(largest, 0.0), wanted, 0.0), DType::kFloat32);
}

}  // namespace

Narrowed empty_narrowed(const Shape& shape, DType dtype, int axis, Device device) {
  return {empty(shape, dtype, device), empty(lines_of(shape, axis), DType::kFloat32, device)};
}

Narrowed narrowed(const Tensor& x, DType dtype, int axis) {
  Narrowed result = empty_narrowed(x.shape(), dtype, axis, x.device());
  if (x.size() == 0) {
    fill(result.exponents, 0);
    return result;
  }
  copy_into(result.exponents, scale_exponents(x, axis));
  const auto narrow =
      fuse([&] { return cast(scaled(x, powers_of_two(result.exponents, x.dtype())), dtype); });
  copy_into(result.values, narrow());
  return result;
}

void widen_into(const Tensor& out, const Narrowed& from) {
  if (out.size() == 0) return;
  const Tensor back = negative(from.exponents);
  const auto widen = fuse([&] { return scaled(from.values, powers_of_two(back, out.dtype())); });
  copy_into(out, widen());
}

void multiply_narrowed(const Tensor& a, const Tensor& b, DType dtype, bool adds, const Tensor& c) {
  if (c.size() == 0) return;
  const Narrowed left = narrowed(a, dtype, 1), right = narrowed(b, dtype, 0);
  const Tensor scaled = adds ? empty(c.shape(), c.dtype(), c.device()) : c;
  matmul(left.values, right.values, {.dtype = c.dtype()}, &scaled);
  // Both exponents at once: each alone may take a product out of range that both bring back. Below
  // the least all that is finite becomes 0 in any case, and infinities must not meet a factor of 0.
  constexpr double kLeast = -252;
  const auto widen = fuse([&] {
    const Tensor back = maximum(negative(add(left.exponents, right.exponents)), kLeast);
    const Tensor half = floor(multiply(back, 0.5));
    const Tensor product = multiply(multiply(scaled, exp2(half)), exp2(subtract(back, half)));
    return adds ? add(c, product) : product;
  });
  copy_into(c, widen());
}

}  // namespace cuop::dist
