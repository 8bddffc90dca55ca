#include <algorithm>
#include <utility>

#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/arranged_product_internal.h"
#include "cuop/ops/matmul/matmul_internal.h"

namespace cuop::kernels {

namespace {

bool is_single(const Tensor& t) {
  for (int i = 0; i + 2 < t.ndim(); ++i) {
    if (t.shape(i) != 1 && t.strides()[i] != 0) return false;
  }
  return true;
}

}  // namespace

void merge_batch(Product& p) {
  // A stack times one matrix is one tall product when the rows of the stack follow each other.
  if (p.c.ndim() == 2 || p.conjugate_a || !is_single(p.b)) return;
  const auto merged = [](const Tensor& t) {
    const int64_t columns = t.shape().back();
    return try_reshape(t.layout(), {columns == 0 ? 0 : t.size() / columns, columns});
  };
  const auto a = merged(p.a), c = merged(p.c);
  if (!a || !c || p.a.size() == 0) return;
  p.a = p.a.with_layout(*a);
  p.c = p.c.with_layout(*c);
  while (p.b.ndim() > 2) p.b = select(p.b, 0, 0);
}

ArrangedProduct arrange(Product& p) {
  merge_batch(p);
  auto c = reading(p.c);
  if (c && c->trans != Trans::kNone && !p.conjugate_a) {  // C^T = B^T A^T
    std::swap(p.a, p.b);
    for (Tensor* t : {&p.a, &p.b, &p.c}) *t = swap_axes(*t, -1, -2);
    c = reading(p.c);
  }
  ArrangedProduct arranged;
  if (!c || c->trans != Trans::kNone) {
    arranged.target = p.c;
    p.c = is_zero(p.beta) ? empty(p.c.shape(), p.c.dtype(), p.c.device()) : clone(p.c);
    c = reading(p.c);
  }
  auto a = reading(p.a, p.conjugate_a);
  if (!a || (p.conjugate_a && a->trans == Trans::kNone)) {
    p.a = p.conjugate_a ? swap_axes(compact(swap_axes(p.a, -1, -2)), -1, -2) : compact(p.a);
    a = reading(p.a, p.conjugate_a);
  }
  auto b = reading(p.b);
  if (!b) {
    p.b = compact(p.b);
    b = reading(p.b);
  }
  arranged.a = *a;
  arranged.b = *b;
  arranged.ldc = c->ld;
  return arranged;
}

void finish(const ArrangedProduct& arranged, const Product& product) {
  if (!arranged.target.is_defined()) return;
  copy_into(arranged.target, slice(product.c, -1, 0, arranged.target.shape().back()));
}

std::optional<Reading> reading(const Tensor& t, bool prefer_transposed) {
  const int r = t.ndim() - 2;
  const int64_t rows = t.shape(r), columns = t.shape(r + 1);
  const int64_t row_step = t.strides()[r], column_step = t.strides()[r + 1];
  std::optional<Reading> plain, transposed;
  if ((column_step == 1 || columns == 1) && (row_step >= columns || rows == 1) &&
      (row_step > 0 || rows == 1)) {
    plain = Reading{Trans::kNone, rows == 1 ? std::max<int64_t>(1, columns) : row_step};
  }
  if ((row_step == 1 || rows == 1) && (column_step >= rows || columns == 1) &&
      (column_step > 0 || columns == 1)) {
    transposed = Reading{Trans::kTrans, columns == 1 ? std::max<int64_t>(1, rows) : column_step};
  }
  if (prefer_transposed) return transposed ? transposed : plain;
  return plain ? plain : transposed;
}

Tensor distinct(const Tensor& t) {
  Tensor once = t;
  for (int i = 0; i + 2 < t.ndim(); ++i) {
    if (t.strides()[i] == 0 && t.shape(i) > 1) once = slice(once, i, 0, 1);
  }
  return once;
}

Tensor compact(const Tensor& t) { return broadcast_to(clone(distinct(t)), t.shape()); }

}  // namespace cuop::kernels
