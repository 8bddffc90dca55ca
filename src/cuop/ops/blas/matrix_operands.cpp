#include "cuop/ops/blas/matrix_operands_internal.h"

namespace cuop::kernels {

Operand readable(const Tensor& t) {
  if (const auto found = reading(t)) return {t, *found};
  const Tensor copy = clone(t);
  return {copy, *reading(copy)};
}

Operand readable_by_rows(const Tensor& t) {
  const Operand operand = readable(t);
  if (operand.reading.trans == Trans::kNone) return operand;
  const Tensor copy = clone(t);
  return {copy, *reading(copy)};
}

Operand with_operation(const Tensor& a, Trans* trans) {
  if (*trans == Trans::kConjTrans) {
    if (is_complex(a.dtype())) return readable_by_rows(a);
    *trans = Trans::kTrans;
  }
  const Operand operand = readable(a);
  if (operand.reading.trans == Trans::kTrans) {
    *trans = *trans == Trans::kNone ? Trans::kTrans : Trans::kNone;
  }
  return operand;
}

Target::Target(const Tensor& out, bool is_read) : out_(out), used_(out) {
  const auto found = reading(out);
  if (!found || found->trans != Trans::kNone) {
    used_ = is_read ? clone(out) : empty(out.shape(), out.dtype(), out.device());
  }
}

void Target::finish() const {
  if (!is_same_view(out_, used_)) copy_into(out_, used_);
}

}  // namespace cuop::kernels
