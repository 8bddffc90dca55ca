#include <algorithm>

#include "binders.h"
#include "cuop/core/text.h"
#include "cuop/ops/matmul/matmul.h"

namespace cuop::python {

namespace {

using Out = std::optional<Tensor>;

constexpr const char* kMatmulDoc =
    R"(alpha * op(a) @ op(b) + beta * out, by the rules of NumPy and the Array API.

1-D arguments are a row (a) or a column (b) whose axis is dropped; leading axes are a batch and
broadcast. trans_a and trans_b, a bool or a Trans or its name, swap the last two axes, and conjugate
for 'conj_trans'. The result has the promoted dtype of a and b:
float16 and bfloat16 accumulate in float32 and round once, integers wrap, bool is "or" of "and".
With beta = 0 the values of `out` are not read; another beta needs `out`. Raises ShapeError,
DTypeError, ExecutionError (beta without out, a coefficient that the dtype cannot hold) and
DeviceError when no BLAS library is installed.)";

MatmulOptions options(const Arg<Trans>& trans_a, const Arg<Trans>& trans_b,
                      const Arg<Scalar>& alpha, const Arg<Scalar>& beta) {
  return {*trans_a, *trans_b, *alpha, *beta};
}

/// tensordot's axes: a count of trailing and leading axes, or a pair of axis lists.
std::pair<std::vector<int64_t>, std::vector<int64_t>> paired_axes(nb::handle axes, int ndim_a,
                                                                  int ndim_b) {
  if (PyIndex_Check(axes.ptr()) != 0) {
    const int64_t count = named_argument<Shape>(axes, "axes")[0];
    if (count < 0 || count > std::min(ndim_a, ndim_b)) {
      throw ShapeError(cat("tensordot: axes is ", count, "; tensors of ", ndim_a, " and ", ndim_b,
                           " dimensions have 0 to ", std::min(ndim_a, ndim_b), " to pair"));
    }
    std::vector<int64_t> of_a, of_b;
    for (int64_t i = 0; i < count; ++i) {
      of_a.push_back(ndim_a - count + i);
      of_b.push_back(i);
    }
    return {of_a, of_b};
  }
  if (!nb::isinstance<nb::sequence>(axes) || nb::len(axes) != 2) {
    throw ShapeError("tensordot: axes must be a number of axes or a pair (axes of a, axes of b)");
  }
  return {named_argument<Axes>(axes[0], "axes").values,
          named_argument<Axes>(axes[1], "axes").values};
}

}  // namespace

void bind_matmul(Module& m) {
  m.def(
      "matmul",
      [](Arg<Tensor> a, Arg<Tensor> b, Arg<Trans> trans_a, Arg<Trans> trans_b, Arg<Scalar> alpha,
         Arg<Scalar> beta,
         Out out) { return matmul(a, b, options(trans_a, trans_b, alpha, beta), pointer(out)); },
      "a"_a, "b"_a, nb::kw_only(), "trans_a"_a = false, "trans_b"_a = false, "alpha"_a = 1,
      "beta"_a = 0, "out"_a = nb::none(), ReturnsOut(), Released(), kMatmulDoc);
  m.def(
      "batch_matmul",
      [](Arg<Tensor> a, Arg<Tensor> b, Arg<Trans> trans_a, Arg<Trans> trans_b, Arg<Scalar> alpha,
         Arg<Scalar> beta, Out out) {
        return batch_matmul(a, b, options(trans_a, trans_b, alpha, beta), pointer(out));
      },
      "a"_a, "b"_a, nb::kw_only(), "trans_a"_a = false, "trans_b"_a = false, "alpha"_a = 1,
      "beta"_a = 0, "out"_a = nb::none(), ReturnsOut(), Released(),
      "matmul of [..., M, K] and [..., K, N] with equal leading axes and at least 3 dimensions.");
  m.def(
      "outer", [](Arg<Tensor> a, Arg<Tensor> b, Out out) { return outer(a, b, pointer(out)); },
      "a"_a, "b"_a, nb::kw_only(), "out"_a = nb::none(), ReturnsOut(), Released(),
      "a[i] * b[j] for two vectors.");
  m.def(
      "vecdot",
      [](Arg<Tensor> a, Arg<Tensor> b, int64_t axis, Out out) {
        return vecdot(a, b, axis, pointer(out));
      },
      "a"_a, "b"_a, nb::kw_only(), "axis"_a = -1, "out"_a = nb::none(), ReturnsOut(), Released(),
      "Sum of conj(a) * b along `axis`; the other axes broadcast (Array API).");
  m.def(
      "tensordot",
      [](Arg<Tensor> a, Arg<Tensor> b, nb::object axes, Out out) {
        const auto [of_a, of_b] = paired_axes(axes, a->ndim(), b->ndim());
        const nb::gil_scoped_release released;
        return tensordot(a, b, of_a, of_b, pointer(out));
      },
      "a"_a, "b"_a, "axes"_a = 2, nb::kw_only(), "out"_a = nb::none(), ReturnsOut(),
      "Sum over paired axes: the last and first `axes` ones, or (axes of a, axes of b). The free "
      "axes of a come first, then those of b.");

  auto tensor = nb::borrow<Class<Tensor>>(m.attr("Tensor"));
  tensor.def(
      "__matmul__", [](const Tensor& a, Arg<Tensor> b) { return matmul(a, b); }, "other"_a,
      Released(), "self @ other; see matmul.");
  tensor.def(
      "__rmatmul__", [](const Tensor& b, Arg<Tensor> a) { return matmul(a, b); }, "other"_a,
      Released(), "other @ self; see matmul.");
}

}  // namespace cuop::python
