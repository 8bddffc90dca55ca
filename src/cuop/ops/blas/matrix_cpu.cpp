// Levels 2 and 3 through the BLAS library. Matrices that it cannot read where they lie are copied.
#include "cuop/backend/cpu/blas.h"
#include "cuop/ops/blas/blas_kernels.h"
#include "cuop/ops/convert.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/matmul/blas_reading_internal.h"
#include "cuop/ops/matmul/coefficients_internal.h"

namespace cuop::kernels {

namespace {

namespace blas = backend::blas;

/// A tensor together with the way to read it.
struct Operand {
  Tensor tensor;
  Reading reading;
};

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

/// The output by rows: itself, or a temporary that `finish` copies back.
class Target {
 public:
  Target(const Tensor& out, bool is_read) : out_(out), used_(out) {
    const auto found = reading(out);
    if (!found || found->trans != Trans::kNone) {
      used_ = is_read ? clone(out) : empty(out.shape(), out.dtype(), out.device());
    }
  }
  const Tensor& tensor() const { return used_; }
  int64_t ld() const { return reading(used_)->ld; }
  void finish() const {
    if (!is_same_view(out_, used_)) copy_into(out_, used_);
  }

 private:
  Tensor out_;
  Tensor used_;
};

Uplo other(Uplo uplo) { return uplo == Uplo::kLower ? Uplo::kUpper : Uplo::kLower; }

/// Turns the reading of a transposed matrix into an operation on it; conj(A^T) read as a transpose
/// would be conj(A), which BLAS does not have, so that one is copied.
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

template <class T>
void gemv_typed(const Tensor& a, const Tensor& x, const GemvOptions& options, const Tensor& y) {
  blas::GemvCall<T> call;
  call.trans = options.trans;
  const Operand matrix = with_operation(a, &call.trans);
  const bool is_flipped = matrix.reading.trans == Trans::kTrans;
  // A stride of 0 (a broadcast vector) has no meaning in BLAS.
  const Tensor vector = x.strides()[0] == 0 ? clone(x) : x;
  call.m = a.shape(is_flipped ? 1 : 0);
  call.n = a.shape(is_flipped ? 0 : 1);
  call.alpha = convert_scalar<T>(options.alpha);
  call.beta = convert_scalar<T>(options.beta);
  call.a = matrix.tensor.data<T>();
  call.lda = matrix.reading.ld;
  call.x = vector.data<T>();
  call.incx = vector.size() > 1 ? vector.strides()[0] : 1;
  call.y = y.data<T>();
  call.incy = y.size() > 1 ? y.strides()[0] : 1;
  blas::gemv(call);
}

template <class T>
void symm_typed(const Tensor& a, const Tensor& b, const SymmOptions& options, const Tensor& c) {
  const Operand symmetric = readable(a), dense = readable_by_rows(b);
  const Target target(c, !is_zero(options.beta));
  blas::SymmCall<T> call;
  call.side = options.side;
  call.uplo = symmetric.reading.trans == Trans::kNone ? options.uplo : other(options.uplo);
  call.m = c.shape(0);
  call.n = c.shape(1);
  call.alpha = convert_scalar<T>(options.alpha);
  call.beta = convert_scalar<T>(options.beta);
  call.a = symmetric.tensor.data<T>();
  call.lda = symmetric.reading.ld;
  call.b = dense.tensor.data<T>();
  call.ldb = dense.reading.ld;
  call.c = target.tensor().data<T>();
  call.ldc = target.ld();
  blas::symm(call);
  target.finish();
}

template <class T>
void trsm_typed(const Tensor& a, const Tensor& b, const TrsmOptions& options, const Tensor& x) {
  blas::TrsmCall<T> call;
  call.trans = options.trans;
  const Operand triangular = with_operation(a, &call.trans);
  const Target target(x, false);
  copy_into(target.tensor(), b);  // nothing when x is b
  call.side = options.side;
  call.uplo = triangular.reading.trans == Trans::kNone ? options.uplo : other(options.uplo);
  call.diag = options.diag;
  call.m = x.shape(0);
  call.n = x.shape(1);
  call.alpha = convert_scalar<T>(options.alpha);
  call.a = triangular.tensor.data<T>();
  call.lda = triangular.reading.ld;
  call.b = target.tensor().data<T>();
  call.ldb = target.ld();
  blas::trsm(call);
  target.finish();
}

bool is_of_blas(DType dtype) { return compute_dtype(dtype) == dtype && !is_integer(dtype); }

}  // namespace

void gemv_cpu(const Tensor& a, const Tensor& x, const GemvOptions& options, const Tensor& y) {
  if (!is_of_blas(y.dtype())) return gemv_product_cpu(a, x, options, y);
  visit_dtype(FloatComplexTypes{}, y.dtype(), "gemv",
              [&]<class T>(TypeTag<T>) { gemv_typed<T>(a, x, options, y); });
}

void symm_cpu(const Tensor& a, const Tensor& b, const SymmOptions& options, const Tensor& c) {
  if (!is_of_blas(c.dtype())) return symm_product_cpu(a, b, options, c);
  visit_dtype(FloatComplexTypes{}, c.dtype(), "symm",
              [&]<class T>(TypeTag<T>) { symm_typed<T>(a, b, options, c); });
}

void trsm_cpu(const Tensor& a, const Tensor& b, const TrsmOptions& options, const Tensor& x) {
  const DType dtype = compute_dtype(x.dtype());
  if (dtype != x.dtype()) {
    const Tensor wide = empty(x.shape(), dtype, x.device());
    trsm_cpu(cast(a, dtype), cast(b, dtype), options, wide);
    return copy_into(x, wide);
  }
  visit_dtype(FloatComplexTypes{}, dtype, "trsm",
              [&]<class T>(TypeTag<T>) { trsm_typed<T>(a, b, options, x); });
}

}  // namespace cuop::kernels
