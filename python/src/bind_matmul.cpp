#include "binders.h"
#include "cuop/ops/matmul/matmul.h"
#include "operator_methods.h"

namespace cuop::python {

namespace {

using Out = std::optional<Tensor>;

constexpr const char* kMatmulDoc =
    R"(alpha * op(a) @ op(b) + beta * out, by the rules of NumPy and the Array API.

1-D arguments are a row (a) or a column (b) whose axis is dropped; leading axes are a batch and
broadcast. trans_a and trans_b, a bool or a Trans or its name, swap the last two axes, and conjugate
for 'conj_trans'. The result has the promoted dtype of a and b: float16 and bfloat16 accumulate in
float32 and round once, integers wrap, bool is "or" of "and". With dtype='float32' products of
float16 and bfloat16 are not rounded: operands stay 16 bits long, on a GPU on its matrix units, and
the result, as an `out`, is float32. Other dtypes than the promoted one are refused. With alpha = 0
the values of a and b are not read, with beta = 0 those of `out`; another beta needs `out`. Raises
ShapeError, DTypeError (a dtype that the result cannot have, too), ExecutionError (beta without out, a
coefficient that the dtype cannot hold) and DeviceError when no BLAS library is installed.)";

using Product = Tensor (*)(const Tensor&, const Tensor&, const MatmulOptions&, const Tensor*);

void define_product(Module& m, const char* name, Product product, const char* doc) {
  m.def(
      name,
      [product](Arg<Tensor> a, Arg<Tensor> b, Arg<Trans> trans_a, Arg<Trans> trans_b,
                Arg<Scalar> alpha, Arg<Scalar> beta, std::optional<Arg<DType>> dtype, Out out) {
        return product(a, b, {*trans_a, *trans_b, *alpha, *beta, converted(dtype)}, pointer(out));
      },
      "a"_a, "b"_a, nb::kw_only(), "trans_a"_a = false, "trans_b"_a = false, "alpha"_a = 1,
      "beta"_a = 0, "dtype"_a = nb::none(), "out"_a = nb::none(), ReturnsOut(), Released(), doc);
}

nb::object operator_product(int, nb::handle first, nb::handle second) {
  if (!is_operand(first) || !is_operand(second)) return nb::borrow(Py_NotImplemented);
  const auto both = operands<Tensor>(first, second);
  return nb::cast(without_gil([&] { return matmul(both.first, both.second); }));
}

}  // namespace

void bind_matmul(Module& m) {
  define_product(m, "matmul", &matmul, kMatmulDoc);
  define_product(
      m, "batch_matmul", &batch_matmul,
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

  static constexpr const char* kStub = "(self, other: ArrayLike, /) -> Tensor";
  auto tensor = nb::borrow<Class<Tensor>>(m.attr("Tensor"));
  define_operator(tensor, "matmul", kStub, 0, operator_product);
  define_operator(tensor, "rmatmul", kStub, 0, [](int, nb::handle self, nb::handle other) {
    return operator_product(0, other, self);
  });
}

}  // namespace cuop::python
