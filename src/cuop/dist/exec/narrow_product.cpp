#include "cuop/dist/exec/narrow_product.h"

#include "cuop/dist/exec/narrow.h"
#include "cuop/jit/fusion.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/matmul/matmul.h"

namespace cuop::dist {

void multiply_narrowed(const Tensor& a, const Tensor& b, DType dtype, bool adds, const Tensor& c) {
  if (c.size() == 0) return;
  const Narrowed left = narrowed(a, dtype, 1), right = narrowed(b, dtype, 0);
  const Tensor scaled = adds ? empty(c.shape(), c.dtype(), c.device()) : c;
  matmul(left.values, right.values, {.dtype = c.dtype()}, &scaled);
  Fused scope;
  // Both exponents at once: each alone may take a product out of range that both bring back. Below
  // the least all that is finite becomes 0 in any case, and infinities must not meet a factor of 0.
  constexpr double kLeast = -252;
  const Tensor back = maximum(negative(add(left.exponents, right.exponents)), kLeast);
  const Tensor half = floor(multiply(back, 0.5));
  const Tensor product = multiply(multiply(scaled, exp2(half)), exp2(subtract(back, half)));
  copy_into(c, adds ? add(c, product) : product);
  scope.close();
}

}  // namespace cuop::dist
