// How an operator and its JIT wrapper become Python classes: the constructor and the calls are
// described once for both.
#pragma once

#include <tuple>
#include <type_traits>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/operators/tuned/jit.h"
#include "define.h"
#include "operator_arguments.h"

namespace cuop::python {

template <class Op>
using OperatorClass = Class<Op, Operator>;

template <class Op>
struct IsJit : std::false_type {};
template <class Op>
struct IsJit<Jit<Op>> : std::true_type {
  using Wrapped = Op;
};

/// The constructor of a wrapper around an operator that exists.
template <class Op>
void def_wrap(OperatorClass<Op>& c, const std::string& wrapped_name) {
  using Wrapped = typename IsJit<Op>::Wrapped;
  c.def(
      "__init__",
      [wrapped_name](Op* self, const Operator& op) {
        const auto* wrapped = dynamic_cast<const Wrapped*>(&op);
        if (wrapped == nullptr) {
          throw DTypeError(
              cat("JIT", wrapped_name, ": wraps a ", wrapped_name, ", given a ", op.name()));
        }
        new (self) Op(*wrapped);
      },
      "operator"_a, OneOfSeveral(),
      nb::sig(cat("def __init__(self, operator: ", wrapped_name, ") -> None").c_str()),
      "Wraps an operator, whose options it takes over and whose weights it shares: whichever of "
      "the two sets one, both have it.");
}

/// The members that all wrappers have, which are the same functions in each class: the last form of
/// `warmup` is one of them.
void def_jit_members(nb::handle jit_class);

/// forward, cost and, for wrappers, warmup. `convert(op, arguments...)` makes the tuple of C++
/// arguments; `output` is the index of the Python argument that forward returns.
template <size_t output, class... Arguments, class Op, class Convert, class... Extra>
void def_calls(OperatorClass<Op>& c, Convert convert, const char* doc, const Extra&... extra) {
  c.def(
      "forward",
      [convert](Op& op, Arguments... arguments) {
        guarded(op, [&] {
          const auto converted = convert(op, arguments...);
          const nb::gil_scoped_release released;
          std::apply([&](const auto&... values) { op.forward(values...); }, converted);
        });
        return OutputObject(std::get<output>(std::tie(arguments...)));
      },
      extra..., doc);
  c.def(
      "cost",
      [convert](Op& op, Arguments... arguments) {
        return guarded(op, [&] {
          const auto converted = convert(op, arguments...);
          const Cost cost =
              std::apply([&](const auto&... values) { return op.task(values...).cost; }, converted);
          return std::pair{cost.flops, cost.bytes};
        });
      },
      extra..., "(operations, bytes) of forward with these arguments.");
  if constexpr (IsJit<Op>::value) {
    c.def(
        "warmup",
        [convert](Op& op, Arguments... arguments) {
          guarded(op, [&] {
            const auto converted = convert(op, arguments...);
            const nb::gil_scoped_release released;
            std::apply([&](const auto&... values) { op.warm_up(values...); }, converted);
          });
        },
        extra..., OneOfSeveral(),
        "Chooses the kernel for these arguments; the output is left as it is.");
  }
}

/// A call of one input, one output and what `names` are the names of.
template <class... More, class Op, class... Names>
void def_map(OperatorClass<Op>& c, const char* input, const char* output, const char* doc,
             const Names&... names) {
  def_calls<1, InputObject, OutputObject, More...>(
      c,
      [output](Op& op, InputObject x, OutputObject y, More... more) {
        return std::tuple(operator_input(x, op), operator_output(y, output), more...);
      },
      doc, nb::arg(input), nb::arg(output), names...);
}

/// A setter of a weight.
template <class Op, class Set>
void def_setter(OperatorClass<Op>& c, const char* name, Set set, const char* argument,
                const char* doc) {
  c.def(
      name,
      [set](Op& op, InputObject value) {
        guarded(op, [&] {
          const Tensor tensor = operator_input(value, op);
          const nb::gil_scoped_release released;
          (op.*set)(tensor);
        });
      },
      nb::arg(argument), doc);
}

/// Makes one class; `define(class)` gives it its constructor and calls.
template <class Op, class Define>
[[gnu::cold]] void bind_class(Module& m, const std::string& name, const std::string& doc,
                              Define define) {
  OperatorClass<Op> c(m, name.c_str(), doc.c_str());
  if constexpr (IsJit<Op>::value) def_wrap(c, name.substr(std::string_view("JIT").size()));
  define(c);
  if constexpr (IsJit<Op>::value) def_jit_members(c);
}

/// An operator's classes for float and double, named e.g. "DotFloat".
template <template <class> class Op, class Define>
void bind_operator(Module& m, const std::string& name, const std::string& doc, Define define) {
  bind_class<Op<float>>(m, name + "Float", doc, define);
  bind_class<Op<double>>(m, name + "Double", doc, define);
}

/// The same and the JIT wrappers, e.g. "JITGemmFloat".
template <template <class> class Op, class Define>
void bind_jit_operator(Module& m, const std::string& name, const std::string& doc, Define define) {
  bind_operator<Op>(m, name, doc, define);
  const std::string jit_doc =
      doc + "\n\nA JIT wrapper: chooses among the operator's kernels, tells their times.";
  bind_class<Jit<Op<float>>>(m, "JIT" + name + "Float", jit_doc, define);
  bind_class<Jit<Op<double>>>(m, "JIT" + name + "Double", jit_doc, define);
}

}  // namespace cuop::python
