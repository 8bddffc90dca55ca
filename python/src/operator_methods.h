// Python's operators and the elementwise operations that they are, and how they become methods.
#pragma once

#include <string>

#include "cuop/core/text.h"
#include "cuop/jit/op_table.h"
#include "define.h"

namespace cuop::python {

struct OperatorName {
  const char* op;
  const char* method;
};
inline constexpr OperatorName kUnaryOperators[] = {
    {"negative", "neg"}, {"positive", "pos"}, {"abs", "abs"}, {"bitwise_invert", "invert"}};
inline constexpr OperatorName kBinaryOperators[] = {{"add", "add"},
                                                    {"subtract", "sub"},
                                                    {"multiply", "mul"},
                                                    {"divide", "truediv"},
                                                    {"floor_divide", "floordiv"},
                                                    {"remainder", "mod"},
                                                    {"pow", "pow"},
                                                    {"bitwise_and", "and"},
                                                    {"bitwise_or", "or"},
                                                    {"bitwise_xor", "xor"},
                                                    {"bitwise_left_shift", "lshift"},
                                                    {"bitwise_right_shift", "rshift"}};
inline constexpr OperatorName kComparisons[] = {{"equal", "eq"},   {"not_equal", "ne"},
                                                {"less", "lt"},    {"less_equal", "le"},
                                                {"greater", "gt"}, {"greater_equal", "ge"}};

/// What operators take beside tensors.
inline bool is_number_or_array(nb::handle object) {
  return PyLong_Check(object.ptr()) || PyFloat_Check(object.ptr()) ||
         PyComplex_Check(object.ptr()) || has_attribute(object, "__dlpack__") ||
         has_numpy_elements(object);
}

/// Whether an operator of tensors takes this object; others get NotImplemented, so that Python asks
/// them.
bool is_operand(nb::handle object);

/// Both sides of an operator, as T, one of which is the tensor itself.
template <class T>
std::pair<Arg<T>, Arg<T>> operands(nb::handle first, nb::handle second) {
  std::pair<Arg<T>, Arg<T>> both{first, second};
  named_call([] { return Call::place("other"); },
             [&] {
               both.first.convert();
               both.second.convert();
             });
  return both;
}

/// Defines a method, function(code, self, other). `stub` is what follows its name in stubs.
template <class T, class Function>
void define_operator(Class<T>& type, const std::string& method, const char* stub, int code,
                     Function function) {
  const std::string name = cat("__", method, "__");
  type.def(
      name.c_str(),
      [code, function](nb::handle self, nb::handle other) { return function(code, self, other); },
      "other"_a.none(), nb::sig(cat("def ", name, stub).c_str()));
}

/// Defines all binary operators, compute(code, first, second) of either side, in_place(code, self,
/// other), and the comparisons.
template <class T, class Compute, class InPlace>
void define_operators(Class<T>& type, const char* stub, Compute compute, InPlace in_place) {
  const auto reflected = [compute](int code, nb::handle self, nb::handle other) {
    return compute(code, other, self);
  };
  for (const auto& [op, method] : kBinaryOperators) {
    const int code = jit::find_op(op);
    define_operator(type, method, stub, code, compute);
    define_operator(type, cat("r", method), stub, code, reflected);
    define_operator(type, cat("i", method), stub, code, in_place);
  }
  const nb::object identity_hash = nb::getattr(type, "__hash__");
  for (const auto& [op, method] : kComparisons) {
    define_operator(type, method, stub, jit::find_op(op), compute);
  }
  nb::setattr(type, "__hash__", identity_hash);  // tensors are keys by identity, as in PyTorch
}

}  // namespace cuop::python
