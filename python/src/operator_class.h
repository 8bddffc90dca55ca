// How an operator and its JIT wrapper become Python classes: the constructor and the calls are
// described once for both.
#pragma once

#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

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

/// Throws: a method of the class was given an operator of another one.
[[noreturn]] void refuse_operator(const Operator& op, nb::handle wanted_class);

/// The operator as what its class is.
template <class Op>
Op& as_own(Operator& op) {
  if (typeid(op) != typeid(Op)) [[unlikely]]
    refuse_operator(op, nb::type<Op>());
  return static_cast<Op&>(op);
}

/// What the calls of a class do. The functions that Python sees are the same ones for all classes
/// whose calls have the same parameters, as to compile one takes long. `output` is the name of the
/// argument that is written to.
template <class... Arguments>
struct OperatorCalls {
  using Run = void (*)(Operator& op, const char* output, const Arguments&... arguments);
  const char* output;
  Run forward = nullptr;
  Cost (*cost)(Operator& op, const char* output, const Arguments&... arguments) = nullptr;
  Run warm_up = nullptr;  ///< of wrappers
};

/// work(the operator as Op, C++ arguments...), of which `Convert` makes the tuple.
template <class Op, class Convert, class Work, class... Arguments>
auto with_converted(Operator& op, const char* output, Work work, const Arguments&... arguments) {
  Op& own = as_own<Op>(op);
  const auto converted = Convert()(own, output, arguments...);
  return std::apply([&](const auto&... values) { return work(own, values...); }, converted);
}

/// The calls of Op.
template <class Op, class Convert, class... Arguments>
constexpr OperatorCalls<Arguments...> calls_of(const char* output) {
  OperatorCalls<Arguments...> calls{output};
  calls.forward = [](Operator& op, const char* name, const Arguments&... arguments) {
    const auto forward = [](Op& own, const auto&... values) {
      const nb::gil_scoped_release released;
      own.forward(values...);
    };
    with_converted<Op, Convert>(op, name, forward, arguments...);
  };
  calls.cost = [](Operator& op, const char* name, const Arguments&... arguments) {
    const auto cost = [](Op& own, const auto&... values) { return own.task(values...).cost; };
    return with_converted<Op, Convert>(op, name, cost, arguments...);
  };
  if constexpr (IsJit<Op>::value) {
    calls.warm_up = [](Operator& op, const char* name, const Arguments&... arguments) {
      const auto warm_up = [](Op& own, const auto&... values) {
        const nb::gil_scoped_release released;
        own.warm_up(values...);
      };
      with_converted<Op, Convert>(op, name, warm_up, arguments...);
    };
  }
  return calls;
}

/// forward, cost and, for wrappers, warmup; `written` is the index of the argument that forward
/// returns.
template <size_t written, class... Arguments, class... Extra>
[[gnu::cold]] void def_methods(Class<Operator> c, const OperatorCalls<Arguments...>& calls,
                               const char* doc, const Extra&... extra) {
  const char* const output = calls.output;
  c.def(
      "forward",
      [output, run = calls.forward](Operator& op, Arguments... arguments) {
        guarded(op, [&] { run(op, output, arguments...); });
        return OutputObject(std::get<written>(std::tie(arguments...)));
      },
      extra..., doc);
  c.def(
      "cost",
      [output, run = calls.cost](Operator& op, Arguments... arguments) {
        const Cost cost = guarded(op, [&] { return run(op, output, arguments...); });
        return std::pair{cost.flops, cost.bytes};
      },
      extra..., "(operations, bytes) of forward with these arguments.");
  if (calls.warm_up == nullptr) return;
  c.def(
      "warmup",
      [output, run = calls.warm_up](Operator& op, Arguments... arguments) {
        guarded(op, [&] { run(op, output, arguments...); });
      },
      extra..., OneOfSeveral(),
      "Chooses the kernel for these arguments; the output is left as it is.");
}

/// The same of a class; `names` begin with those of the arguments. `convert(op, written argument's
/// name, arguments...)` makes the tuple of C++ arguments.
template <size_t written, class... Arguments, class Op, class Convert, class... Names>
void def_calls(OperatorClass<Op>& c, Convert, const char* doc, const Names&... names) {
  static_assert(std::is_empty_v<Convert>);
  const char* const output = std::get<written>(std::tie(names...)).name_;
  def_methods<written>(nb::borrow<Class<Operator>>(c), calls_of<Op, Convert, Arguments...>(output),
                       doc, names...);
}

/// A call of one input, one output and what `names` are the names of.
template <class... More, class Op, class... Names>
void def_map(OperatorClass<Op>& c, const char* input, const char* output, const char* doc,
             const Names&... names) {
  def_calls<1, InputObject, OutputObject, More...>(
      c,
      [](const Operator& op, const char* name, InputObject x, OutputObject y, More... more) {
        return std::tuple(operator_input(x, op), operator_output(y, name), more...);
      },
      doc, nb::arg(input), nb::arg(output), names...);
}

/// A method of the class that takes a tensor, by a function for all classes.
void def_tensor_setter(nb::handle operator_class, const char* name,
                       void (*set)(Operator& op, const Tensor& value), const char* argument,
                       const char* doc);

/// A setter of a weight.
template <auto set, class Op>
void def_setter(OperatorClass<Op>& c, const char* name, const char* argument, const char* doc) {
  def_tensor_setter(
      c, name,
      [](Operator& op, const Tensor& value) {
        Op& own = as_own<Op>(op);
        const nb::gil_scoped_release released;
        (own.*set)(value);
      },
      argument, doc);
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
