// Levels 2 and 3 through the BLAS library. Matrices that it cannot read where they lie are copied.
#include "cuop/backend/cpu/blas.h"
#include "cuop/ops/blas/matrix_operands_internal.h"

namespace cuop::kernels {

namespace {

namespace blas = backend::blas;

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

bool is_of_blas(DType dtype) { return compute_dtype(dtype) == dtype && !is_integer(dtype); }

}  // namespace

void gemv_cpu(const Tensor& a, const Tensor& x, const GemvOptions& options, const Tensor& y) {
  if (!is_of_blas(y.dtype())) return gemv_product_cpu(a, x, options, y);
  visit_dtype(FloatComplexTypes{}, y.dtype(), "gemv",
              [&]<class T>(TypeTag<T>) { gemv_typed<T>(a, x, options, y); });
}

void symm_cpu(const Tensor& a, const Tensor& b, const SymmOptions& options, const Tensor& c) {
  if (!is_of_blas(c.dtype())) return symm_product_cpu(a, b, options, c);
  visit_dtype(FloatComplexTypes{}, c.dtype(), "symm", [&]<class T>(TypeTag<T>) {
    symm_by<T>(a, b, options, c, [](const blas::SymmCall<T>& call) { blas::symm(call); });
  });
}

void trsm_cpu(const Tensor& a, const Tensor& b, const TrsmOptions& options, const Tensor& x) {
  compute_wide(a, b, x, [&](const Tensor& wide_a, const Tensor& wide_b, const Tensor& wide_x) {
    visit_dtype(FloatComplexTypes{}, wide_x.dtype(), "trsm", [&]<class T>(TypeTag<T>) {
      trsm_by<T>(wide_a, wide_b, options, wide_x,
                 [](const blas::TrsmCall<T>& call) { blas::trsm(call); });
    });
  });
}

}  // namespace cuop::kernels
