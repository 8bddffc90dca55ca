// Internal: matrices as a BLAS library reads them where they lie; what it cannot read is copied.
#pragma once

#include "cuop/backend/blas_calls.h"
#include "cuop/ops/blas/blas_kernels.h"
#include "cuop/ops/convert_internal.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/matmul/arranged_product_internal.h"
#include "cuop/ops/matmul/matmul_internal.h"

namespace cuop::kernels {

/// A tensor together with the way to read it.
struct Operand {
  Tensor tensor;
  Reading reading;
};
Operand readable(const Tensor& t);
Operand readable_by_rows(const Tensor& t);

/// Turns the reading of a transposed matrix into an operation on it; conj(A^T) read as a transpose
/// would be conj(A), which BLAS does not have, so that one is copied.
Operand with_operation(const Tensor& a, Trans* trans);

/// The output by rows: itself, or a temporary that `finish` copies back.
class Target {
 public:
  Target(const Tensor& out, bool is_read);
  const Tensor& tensor() const { return used_; }
  int64_t ld() const { return reading(used_)->ld; }
  void finish() const;

 private:
  Tensor out_;
  Tensor used_;
};

/// Calls run(SymmCall<T>) or run(TrsmCall<T>) for tensors of any strides; T is a type that BLAS
/// has.
template <class T, class Run>
void symm_by(const Tensor& a, const Tensor& b, const SymmOptions& options, const Tensor& c,
             Run run) {
  const Operand symmetric = readable(a), dense = readable_by_rows(b);
  const Target target(c, !is_zero(options.beta));
  const bool is_turned = symmetric.reading.trans != Trans::kNone;
  backend::blas::SymmCall<T> call;
  call.side = options.side;
  call.uplo = is_turned ? backend::blas::opposite(options.uplo) : options.uplo;
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
  run(call);
  target.finish();
}

template <class T, class Run>
void trsm_by(const Tensor& a, const Tensor& b, const TrsmOptions& options, const Tensor& x,
             Run run) {
  backend::blas::TrsmCall<T> call;
  call.trans = options.trans;
  const Operand triangular = with_operation(a, &call.trans);
  const Target target(x, false);
  copy_into(target.tensor(), b);  // nothing when x is b
  const bool is_turned = triangular.reading.trans != Trans::kNone;
  call.side = options.side;
  call.uplo = is_turned ? backend::blas::opposite(options.uplo) : options.uplo;
  call.diag = options.diag;
  call.m = x.shape(0);
  call.n = x.shape(1);
  call.alpha = convert_scalar<T>(options.alpha);
  call.a = triangular.tensor.data<T>();
  call.lda = triangular.reading.ld;
  call.b = target.tensor().data<T>();
  call.ldb = target.ld();
  run(call);
  target.finish();
}

/// Calls compute(a, b, x) in the dtype in which x's is computed: 16-bit floats in float32, rounded
/// once.
template <class Compute>
void compute_wide(const Tensor& a, const Tensor& b, const Tensor& x, Compute compute) {
  const DType dtype = compute_dtype(x.dtype());
  if (dtype == x.dtype()) return compute(a, b, x);
  const Tensor wide = empty(x.shape(), dtype, x.device());
  compute(cast(a, dtype), cast(b, dtype), wide);
  copy_into(x, wide);
}

}  // namespace cuop::kernels
