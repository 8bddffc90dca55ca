// The operator objects of linear algebra, and what all operator objects share.
#include "binders.h"
#include "cuop/operators/products.h"
#include "cuop/operators/structured.h"
#include "cuop/operators/vectors.h"
#include "operator_class.h"

namespace cuop::python {

namespace {

constexpr Uplo kSymmIntegers[] = {Uplo::kLower, Uplo::kUpper};
constexpr Uplo kTrsmIntegers[] = {Uplo::kUpper, Uplo::kLower};

void bind_vectors(Module& m) {
  bind_operator<Scal>(m, "Scal", "x <- alpha x, of any shape.", [](auto& c) {
    c.def(nb::init<double>(), "alpha"_a = 1.0);
    def_calls<0, OutputObject>(
        c,
        [](const Operator&, const char* output, OutputObject x) {
          return std::tuple(operator_output(x, output));
        },
        "Scales x in place and returns it.", "x"_a);
  });
  bind_operator<Axpy>(m, "Axpy", "y <- alpha x + y for equal shapes.", [](auto& c) {
    c.def(nb::init<double>(), "alpha"_a = 1.0);
    def_map(c, "x", "y", "Adds alpha x to y and returns y.");
  });
  bind_operator<Copy>(m, "Copy", "y <- x for equal shapes.", [](auto& c) {
    c.def(nb::init<>());
    def_map(c, "x", "y", "Copies x to y and returns y.");
  });
  bind_operator<Dot>(
      m, "Dot", "Sum of x[i] y[i], kept in double precision.", []<class Op>(OperatorClass<Op>& c) {
        const auto with = [](Op& op, InputObject x, InputObject y, auto&& f) {
          return guarded(op, [&] {
            const Tensor a = operator_input(x, op), b = operator_input(y, op);
            const nb::gil_scoped_release released;
            return f(a, b);
          });
        };
        c.def(nb::init<>());
        c.def(
            "forward",
            [with](Op& op, InputObject x, InputObject y) {
              return with(op, x, y,
                          [&](const Tensor& a, const Tensor& b) { return op.forward(a, b); });
            },
            "x"_a, "y"_a, "The scalar product of two vectors as a Python float.");
        c.def(
            "cost",
            [with](Op& op, InputObject x, InputObject y) {
              const Cost cost =
                  with(op, x, y, [&](const Tensor& a, const Tensor& b) { return op.cost(a, b); });
              return std::pair{cost.flops, cost.bytes};
            },
            "x"_a, "y"_a, "(operations, bytes) of forward with these arguments.");
      });
}

void bind_products(Module& m) {
  bind_jit_operator<Gemm>(
      m, "Gemm", "C <- alpha op(A) op(B) + beta C; B is the weight.",
      []<class Op>(OperatorClass<Op>& c) {
        c.def(
            "__init__",
            [](Op* self, Arg<Trans> trans_a, Arg<Trans> trans_b, double alpha, double beta) {
              new (self) Op(*trans_a, *trans_b, alpha, beta);
            },
            "transA"_a = false, "transB"_a = false, "alpha"_a = 1.0, "beta"_a = 0.0);
        def_setter<&Op::set_weight>(c, "set_weight", "B",
                                    "Copies the matrix B [K, N] (as stored).");
        def_map(c, "A", "C",
                "Fills the matrix C, which must not share memory with A, and returns it.");
      });
  bind_jit_operator<Gemv>(m, "Gemv", "y <- alpha op(A) x + beta y; A is the weight.",
                          []<class Op>(OperatorClass<Op>& c) {
                            c.def(
                                "__init__",
                                [](Op* self, Arg<Trans> trans_a, double alpha, double beta) {
                                  new (self) Op(*trans_a, alpha, beta);
                                },
                                "transA"_a = false, "alpha"_a = 1.0, "beta"_a = 0.0);
                            def_setter<&Op::set_weight>(c, "set_weight", "A",
                                                        "Copies the matrix A [M, N].");
                            def_map(c, "x", "y", "Fills the vector y and returns it.");
                          });
  const auto def_matmul = []<class Op>(OperatorClass<Op>& c) {
    c.def(
        "__init__",
        [](Op* self, Arg<Trans> trans_a, Arg<Trans> trans_b) { new (self) Op(*trans_a, *trans_b); },
        "transA"_a = false, "transB"_a = false);
    def_setter<&Op::set_weight>(c, "set_weight", "b",
                                "Copies b, for calls that give only a and out.");
    def_calls<2, InputObject, InputObject, OutputObject>(
        c,
        [](const Operator& op, const char* output, InputObject a, InputObject b, OutputObject out) {
          return std::tuple(operator_input(a, op), operator_input(b, op),
                            operator_output(out, output));
        },
        "Fills out, which must not share memory with a or b, and returns it.", "a"_a, "b"_a,
        "out"_a, OneOfSeveral());
    def_map(c, "a", "out", "The same with the weight for b.");
  };
  bind_jit_operator<MatMul>(m, "MatMul", "out <- op(a) op(b) by the rules of NumPy's matmul.",
                            def_matmul);
  bind_operator<BatchMatMul>(m, "BatchMatMul",
                             "MatMul of a [..., M, K] with at least 3 dimensions and b [..., K, N] "
                             "with the leading axes of a, or [K, N] for the whole batch.",
                             def_matmul);
}

void bind_structured(Module& m) {
  bind_operator<Symm>(
      m, "Symm",
      "C <- alpha A B + beta C, or alpha B A + beta C for side 'right' (1); A is the symmetric "
      "weight of which the uplo triangle is read. As an integer uplo is 0 lower, 1 upper.",
      []<class Op>(OperatorClass<Op>& c) {
        c.def(
            "__init__",
            [](Op* self, Arg<Side> side, UploObject uplo, double alpha, double beta) {
              new (self)
                  Op(*side, uplo_argument(uplo.object, kSymmIntegers, nb::type<Op>()), alpha, beta);
            },
            "side"_a = 0, "uplo"_a = 1, "alpha"_a = 1.0, "beta"_a = 0.0);
        def_setter<&Op::set_weight>(c, "set_weight", "A", "Copies the square matrix A.");
        def_map(c, "B", "C", "Fills C, which must not share memory with B, and returns it.");
      });
  bind_operator<Trsm>(
      m, "Trsm",
      "Solves op(A) X = alpha B, or X op(A) = alpha B for side 'right' (1), with a triangular A. "
      "As "
      "an integer uplo is 0 upper, 1 lower.",
      []<class Op>(OperatorClass<Op>& c) {
        c.def(
            "__init__",
            [](Op* self, Arg<Side> side, UploObject uplo, Arg<Trans> trans, Arg<Diag> diag,
               double alpha) {
              new (self) Op(*side, uplo_argument(uplo.object, kTrsmIntegers, nb::type<Op>()),
                            *trans, *diag, alpha);
            },
            "side"_a = 0, "uplo"_a = 1, "trans"_a = 0, "diag"_a = 0, "alpha"_a = 1.0);
        def_setter<&Op::set_matrix_a>(c, "set_matrix_a", "A", "Copies the square matrix A.");
        def_map(c, "B", "X", "Fills X, which may be B, and returns it.");
      });
}

}  // namespace

void bind_operators(Module& m) {
  Class<Operator>(m, "Operator", "What all operator objects have in common.")
      .def_prop_ro("name", &Operator::name, "The class's name, as in messages.")
      .def("get_last_error", &Operator::last_error,
           "The message of this operator's last call that failed, '' when none has.")
      .def("__repr__", [](const Operator& op) { return "<cuop." + op.name() + ">"; });
  bind_vectors(m);
  bind_products(m);
  bind_structured(m);
}

}  // namespace cuop::python
