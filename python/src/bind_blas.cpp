#include <nanobind/stl/complex.h>
#include <nanobind/stl/variant.h>

#include "binders.h"
#include "cuop/backend/cpu/blas_library.h"
#include "cuop/ops/blas/blas.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/output.h"
#include "library_info.h"

namespace cuop::python {

namespace {

using Out = std::optional<Tensor>;

template <class T>
Tensor scalar_tensor(T value) {
  return from_values<T>({}, std::span<const T>(&value, 1));
}

DotValue dot_product(const Arg<Tensor>& x, const Arg<Tensor>& y, bool conjugate, const Out& out) {
  if (!out) return dot(x, y, conjugate);
  prepare_output("dot", &*out, {}, promote(x->dtype(), y->dtype()), x->device());
  const DotValue sum = dot(x, y, conjugate);
  const Tensor number = std::visit([](auto value) { return scalar_tensor(value); }, sum);
  copy_across(*out, number);
  return sum;
}

}  // namespace

void bind_blas(Module& m) {
  m.def(
      "scal",
      [](Arg<Scalar> alpha, Arg<Tensor> x, Out out) { return scal(*alpha, x, pointer(out)); },
      "alpha"_a, "x"_a, nb::kw_only(), "out"_a = nb::none(), ReturnsOut(), Released(),
      "alpha * x of any shape; `out` may be x. Integers wrap; their alpha must be a whole number "
      "that the dtype holds.");
  m.def(
      "axpy",
      [](Arg<Scalar> alpha, Arg<Tensor> x, Arg<Tensor> y, Out out) {
        return axpy(*alpha, x, y, pointer(out));
      },
      "alpha"_a, "x"_a, "y"_a, nb::kw_only(), "out"_a = nb::none(), ReturnsOut(), Released(),
      "alpha * x + y for equal shapes; `out` may be x or y. Integers wrap; their alpha must be a "
      "whole number that the dtype holds.");
  m.def(
      "dot", &dot_product, "x"_a, "y"_a, nb::kw_only(), "conjugate"_a = false, "out"_a = nb::none(),
      ReturnsOut(), Released(),
      "Sum of x * y (of conj(x) * y when `conjugate`) over two vectors, as a Python float, complex "
      "or int. Accumulated in double, integers in their dtype, where they wrap; the same bits on "
      "any number of threads. With `out`, a tensor of no dimensions, it is written there instead.");
  m.def(
      "gemm",
      [](Arg<Tensor> a, Arg<Tensor> b, Arg<Trans> trans_a, Arg<Trans> trans_b, Arg<Scalar> alpha,
         Arg<Scalar> beta, Out out) {
        return gemm(a, b, {*trans_a, *trans_b, *alpha, *beta}, pointer(out));
      },
      "a"_a, "b"_a, nb::kw_only(), "trans_a"_a = "none", "trans_b"_a = "none", "alpha"_a = 1,
      "beta"_a = 0, "out"_a = nb::none(), ReturnsOut(), Released(),
      "alpha * op(a) @ op(b) + beta * out for matrices op(a) [M, K] and op(b) [K, N]. A beta other "
      "than 0 needs `out`. Dtypes as matmul, which also takes vectors and batches.");
  m.def(
      "gemv",
      [](Arg<Tensor> a, Arg<Tensor> x, Arg<Trans> trans, Arg<Scalar> alpha, Arg<Scalar> beta,
         Out out) {
        return gemv(a, x, {*trans, *alpha, *beta}, pointer(out));
      },
      "a"_a, "x"_a, nb::kw_only(), "trans"_a = "none", "alpha"_a = 1, "beta"_a = 0,
      "out"_a = nb::none(), ReturnsOut(), Released(),
      "alpha * op(a) @ x + beta * out for a [M, N]. A beta other than 0 needs `out`. The 16-bit "
      "floats are computed in float32 and rounded once; integers wrap.");
  m.def(
      "symm",
      [](Arg<Tensor> a, Arg<Tensor> b, Arg<Side> side, Arg<Uplo> uplo, Arg<Scalar> alpha,
         Arg<Scalar> beta, Out out) {
        return symm(a, b, {*side, *uplo, *alpha, *beta}, pointer(out));
      },
      "a"_a, "b"_a, nb::kw_only(), "side"_a = "left", "uplo"_a = "upper", "alpha"_a = 1,
      "beta"_a = 0, "out"_a = nb::none(), ReturnsOut(), Released(),
      "alpha * a @ b + beta * out (b @ a for side='right') with a symmetric a, of which only the "
      "`uplo` triangle is read. Dtypes as gemv.");
  m.def(
      "trsm",
      [](Arg<Tensor> a, Arg<Tensor> b, Arg<Side> side, Arg<Uplo> uplo, Arg<Trans> trans,
         Arg<Diag> diag, Arg<Scalar> alpha, Out out) {
        return trsm(a, b, {*side, *uplo, *trans, *diag, *alpha}, pointer(out));
      },
      "a"_a, "b"_a, nb::kw_only(), "side"_a = "left", "uplo"_a = "lower", "trans"_a = "none",
      "diag"_a = "non_unit", "alpha"_a = 1, "out"_a = nb::none(), ReturnsOut(), Released(),
      "Solves op(a) x = alpha * b, or x op(a) = alpha * b for side='right', with a triangular a. "
      "`out` may be b. Floating and complex dtypes; the 16-bit floats are computed in float32 and "
      "rounded once.");
  m.def(
      "blas_info",
      [] {
        const backend::blas::Info& info = backend::blas::info();
        Record result = library_info(info);
        add_items(result, "core", info.core, "integer_bits", info.integer_bits,
                  "threads_controlled", info.is_thread_controlled);
        return result;
      },
      "The CPU's BLAS library: a dict of available, path, version, core, integer_bits, "
      "threads_controlled and, when there is none, the reason.");
}

}  // namespace cuop::python
