// Arithmetic with DistTensors: the operators, and cuop's elementwise functions.
#include <algorithm>
#include <array>

#include "binders.h"
#include "cuop/core/text.h"
#include "cuop/dist/algo/index.h"
#include "cuop/dist/algo/matmul.h"
#include "cuop/jit/op_table.h"
#include "cuop/ops/copy/copy.h"
#include "operator_methods.h"
#include "parts_operands.h"

namespace cuop::python {

namespace {

using dist::DistOperand;
using dist::DistTensor;

const DistTensor* parts_of(nb::handle object) {
  return is_parts(object) ? nb::inst_ptr<DistTensor>(object) : nullptr;
}

/// A tensor of no dimension, the same on every rank of `beside`.
DistTensor on_all_ranks(nb::handle object, const DistTensor& beside) {
  const bool is_array = nb::isinstance<Tensor>(object) || has_numpy_elements(object) ||
                        has_attribute(object, "__dlpack__");
  Tensor tensor;
  if (is_array) tensor = named_argument<Unplaced>(object, "other").tensor;
  if (!is_array || tensor.ndim() > 0) {
    throw DTypeError(
        cat(Call::place("other"), ": beside a DistTensor needed is another one or a number, given ",
            is_array ? cat("an array of shape ", tensor.shape(), " of this rank alone")
                     : describe(object),
            "; DistTensor(comm, Sharding.replicated(mesh), shape, dtype, array) is one that all "
            "ranks have"));
  }
  const nb::gil_scoped_release released;
  return DistTensor(beside.comm_ptr(),
                    dist::Sharding::replicated(dist::Mesh::line(beside.comm().size())), {},
                    tensor.dtype(), to_device(tensor, beside.device()), beside.device());
}

DistTensor apply(int code, std::span<const nb::handle> objects) {
  const PartsOperands operands(objects);
  const nb::gil_scoped_release released;
  return dist::elementwise(code, operands.list());
}
DistTensor apply(int code, std::initializer_list<nb::handle> objects) {
  return apply(code, std::span(objects.begin(), objects.size()));
}

/// Whether an operator takes this object; others get NotImplemented, so that Python asks them.
bool is_dist_operand(nb::handle object) {
  return nb::isinstance<DistTensor>(object) || nb::isinstance<Tensor>(object) ||
         is_number_or_array(object);
}

nb::object compute_dist(int code, nb::handle first, nb::handle second) {
  if (!is_dist_operand(first) || !is_dist_operand(second)) return nb::borrow(Py_NotImplemented);
  return nb::cast(apply(code, {first, second}));
}

nb::object in_place(int code, nb::handle self, nb::handle other) {
  if (!is_dist_operand(other)) return nb::borrow(Py_NotImplemented);
  const std::array<nb::handle, 2> both{self, other};
  const PartsOperands operands(both);
  without_gil([&] { dist::elementwise_in_place(code, operands.tensor(0), *operands.list()[1]); });
  return nb::borrow(self);
}

/// a @ b as of tensors: a vector is a row on the left and a column on the right, which is left out
/// of the result.
DistTensor product(const DistTensor& a, const DistTensor& b) {
  const bool is_row = a.ndim() == 1, is_column = b.ndim() == 1;
  if (!is_row && !is_column) {
    const bool is_batch = std::max(a.ndim(), b.ndim()) > 2;
    return is_batch ? dist::batch_matmul(a, b) : dist::matmul(a, b);
  }
  const int64_t summed = b.ndim() == 0 ? -1 : b.shape(is_column ? 0 : b.ndim() - 2);
  if (a.ndim() == 0 || a.shape(a.ndim() - 1) != summed) {
    throw ShapeError(cat("matmul: shapes ", a.shape(), " and ", b.shape(),
                         " do not fit; needed are (..., K) and (..., K, N) or (K,)"));
  }
  using Key = std::vector<Index>;
  const NewAxisIndex added;
  const EllipsisIndex rest;
  const DistTensor left = is_row ? dist::get_item(a, Key{added, rest}) : a;
  const DistTensor right = is_column ? dist::get_item(b, Key{rest, added}) : b;
  const DistTensor whole = product(left, right);
  const DistTensor without_row =
      is_row ? dist::get_item(whole, Key{rest, int64_t{0}, SliceIndex{}}) : whole;
  return is_column ? dist::get_item(without_row, Key{rest, int64_t{0}}) : without_row;
}

nb::object matrix_product(int, nb::handle first, nb::handle second) {
  if (!is_dist_operand(first) || !is_dist_operand(second)) return nb::borrow(Py_NotImplemented);
  const std::array<nb::handle, 2> both{first, second};
  const PartsOperands operands(both);
  const DistTensor* left = operands.list()[0]->tensor();
  const DistTensor* right = operands.list()[1]->tensor();
  if (left == nullptr || right == nullptr) {
    throw ShapeError("matmul: a number was given; needed is a DistTensor of 1 or more dimensions");
  }
  return nb::cast(without_gil([&] { return product(*left, *right); }));
}

}  // namespace

PartsOperands::PartsOperands(std::span<const nb::handle> objects) {
  const DistTensor* beside = nullptr;
  for (nb::handle object : objects) {
    if (beside == nullptr) beside = parts_of(object);
  }
  if (beside == nullptr || !beside->is_defined()) {
    throw ExecutionError(cat(Call::place("x"), ": a DistTensor that was never made"));
  }
  for (nb::handle object : objects) {
    if (is_python_number(object)) {
      operands_.emplace_back(named_argument<Scalar>(object, "other"));
    } else {
      const DistTensor* given = parts_of(object);
      tensors_.push_back(given != nullptr ? *given : on_all_ranks(object, *beside));
      operands_.emplace_back(tensors_.back());
    }
    list_.push_back(&operands_.back());
  }
}

void bind_for_parts(Module& m, const char* name, int code, const std::string& doc) {
  const jit::OpInfo& op = jit::op_table()[static_cast<size_t>(code)];
  const auto parameter = [&op](int i) { return nb::arg(op.parameters[i]); };
  if (op.arity == 1) {
    m.def(
        name, [code](Parts x) { return apply(code, {x.object}); }, parameter(0), OneOfSeveral(),
        doc.c_str());
  } else if (op.arity == 2) {
    m.def(
        name,
        [code](Parts a, Beside b) {
          return apply(code, {a.object, b.object});
        },
        parameter(0), parameter(1), OneOfSeveral(), doc.c_str());
    m.def(
        name,
        [code](Beside a, Parts b) {
          return apply(code, {a.object, b.object});
        },
        parameter(0), parameter(1), OneOfSeveral(), doc.c_str());
  } else {
    const auto define = [&]<class A, class B, class C>(A, B, C) {
      m.def(
          name,
          [code](A a, B b, C c) {
            return apply(code, {a.object, b.object, c.object});
          },
          parameter(0), parameter(1), parameter(2), OneOfSeveral(), doc.c_str());
    };
    define(Parts(), Beside(), Beside());
    define(Beside(), Parts(), Beside());
    define(Beside(), Beside(), Parts());
  }
}

void bind_clip_for_parts(Module& m, const char* name, const std::string& doc) {
  using Bound = std::optional<Beside>;
  m.def(
      name,
      [](Parts given, Bound low, Bound high) {
        const nb::handle x = given.object;
        static const int both = jit::find_op("clip"), lower = jit::find_op("maximum"),
                         upper = jit::find_op("minimum"), none = jit::find_op("positive");
        if (low && high) return apply(both, {x, low->object, high->object});
        if (low) return apply(lower, {x, low->object});
        if (high) return apply(upper, {x, high->object});
        return apply(none, {x});
      },
      "x"_a, "min"_a = nb::none(), "max"_a = nb::none(), OneOfSeveral(), doc.c_str());
}

void bind_dist_arithmetic(Module& m) {
  static constexpr const char* kStub = "(self, other: DistTensor | Number, /) -> DistTensor";
  auto type = nb::borrow<Class<DistTensor>>(m.attr("DistTensor"));
  for (const auto& [op, method] : kUnaryOperators) {
    type.def(
        cat("__", method, "__").c_str(),
        [code = jit::find_op(op)](nb::handle self) { return apply(code, {self}); },
        nb::sig(cat("def __", method, "__(self) -> DistTensor").c_str()));
  }
  define_operators(type, kStub, compute_dist, in_place);
  define_operator(type, "matmul", kStub, 0, matrix_product);
  define_operator(type, "rmatmul", kStub, 0, [](int, nb::handle self, nb::handle other) {
    return matrix_product(0, other, self);
  });
  // NumPy leaves `array + x` to x, and its own functions refuse x instead of gathering it.
  nb::setattr(type, "__array_ufunc__", nb::none());
}

}  // namespace cuop::python
