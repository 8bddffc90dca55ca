// Functions, operators and the table of elementwise work, all made from the rows.
#include <map>
#include <string>

#include "binders.h"
#include "cuop/core/text.h"
#include "cuop/jit/op_table.h"
#include "cuop/ops/elementwise/decimals.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "define_both.h"
#include "exchange.h"
#include "operator_methods.h"
#include "parts_operands.h"

namespace cuop::python {

namespace {

using jit::OpInfo;

/// Up to so many elements take less time than giving the GIL up and taking it back.
constexpr int64_t kShort = 512;

/// Whether the work is done by the time that another thread would have noticed: nothing of it is on
/// a GPU or still to be computed, and however the shapes broadcast, there are few elements.
bool is_short(std::span<const Operand* const> operands) {
  int64_t most = 1;
  const Tensor* first = nullptr;
  for (const Operand* operand : operands) {
    const Tensor* tensor = operand->tensor();
    if (tensor == nullptr) continue;
    if (!tensor->is_defined() || !tensor->device().is_cpu() || tensor->storage()->is_deferred()) {
      return false;
    }
    if (first == nullptr || !(tensor->shape() == first->shape())) {
      if (__builtin_mul_overflow(most, tensor->size(), &most)) return false;
    }
    if (first == nullptr) first = tensor;
  }
  return most <= kShort;
}

template <class... Operands>
Tensor apply(int code, const Tensor* out, const Operands&... operands) {
  const std::array<const Operand*, sizeof...(Operands)> list{&operands...};
  std::optional<nb::gil_scoped_release> released;
  if (!is_short(list)) released.emplace();
  return detail::elementwise(code, list, out);
}

const char* describe_rule(jit::Rule rule) {
  switch (rule) {
    case jit::Rule::kInexact:
      return "of the promoted dtype, float64 for integers and bool";
    case jit::Rule::kBool:
      return "bool";
    case jit::Rule::kReal:
      return "of the promoted dtype, the real part's for complex";
    default:
      return "of the promoted dtype";
  }
}

std::string document(const OpInfo& op) {
  std::string dtypes;
  for (const DType dtype : jit::argument_dtypes(op)) {
    dtypes += (dtypes.empty() ? "" : ", ") + std::string(name(dtype));
  }
  return std::string(op.doc) + "\n\nElementwise; shapes broadcast. Arguments: " + dtypes +
         ". Result: " + describe_rule(op.rule) +
         ".\n`out` receives the result; it may be one of the arguments. Raises ShapeError, "
         "DTypeError, ExecutionError (out overlaps an argument or is read-only).\n"
         "Of a DistTensor the parts are computed where they lie, without `out`; of several, see "
         "cuop.dist.add.";
}

void bind_function(Module& m, const char* name, int code) {
  const OpInfo& op = jit::op_table()[static_cast<size_t>(code)];
  const std::string doc = document(op);
  bind_for_parts(m, name, code, doc);
  const auto parameter = [&op](int i) { return nb::arg(op.parameters[i]); };
  const auto out = "out"_a = nb::none();
  if (op.arity == 1) {
    const auto compute = [code](const Arg<Operand>& x, const std::optional<Tensor>& given) {
      return apply(code, pointer(given), *x);
    };
    m.def(name, compute, parameter(0), out, ReturnsOut(), doc.c_str());
    nb::object type = m.attr("Tensor");
    if (nb::hasattr(type, name)) return;  // a property
    nb::borrow<Class<Tensor>>(type).def(name, compute, out, ReturnsOut(), doc.c_str());
  } else if (op.arity == 2) {
    m.def(
        name,
        [code](const Arg<Operand>& a, const Arg<Operand>& b, const std::optional<Tensor>& given) {
          return apply(code, pointer(given), *a, *b);
        },
        parameter(0), parameter(1), out, ReturnsOut(), doc.c_str());
  } else {
    m.def(
        name,
        [code](const Arg<Operand>& a, const Arg<Operand>& b, const Arg<Operand>& c,
               const std::optional<Tensor>& given) {
          return apply(code, pointer(given), *a, *b, *c);
        },
        parameter(0), parameter(1), parameter(2), out, ReturnsOut(), doc.c_str());
  }
}

/// clip with bounds that may be missing.
void bind_clip(Module& m, const char* name) {
  using Bound = std::optional<Arg<Operand>>;
  const std::string doc = document(jit::op_table()[static_cast<size_t>(jit::find_op("clip"))]) +
                          " A bound that is None does not bind.";
  bind_clip_for_parts(m, name, doc);
  define_both(
      m, name,
      [name](const Arg<Operand>& x, const Bound& low, const Bound& high,
             const std::optional<Tensor>& out) {
        static const int both = jit::find_op("clip"), lower = jit::find_op("maximum"),
                         upper = jit::find_op("minimum"), none = jit::find_op("positive");
        return named_call(name, [&] {
          if (low && high) return apply(both, pointer(out), *x, **low, **high);
          if (low) return apply(lower, pointer(out), *x, **low);
          if (high) return apply(upper, pointer(out), *x, **high);
          return apply(none, pointer(out), *x);
        });
      },
      "min"_a = nb::none(), "max"_a = nb::none(), "out"_a = nb::none(), ReturnsOut(), doc.c_str());
}

/// round with decimal places.
void bind_round(Module& m) {
  const int code = jit::find_op("round");
  const std::string doc =
      cat(document(jit::op_table()[static_cast<size_t>(code)]),
          "\nWith `decimals` x is rounded to multiples of 10**-decimals, halves to even as far as "
          "they are halves in x's dtype.");
  bind_for_parts(m, "round", code, doc);
  define_both(
      m, "round",
      [code](const Arg<Operand>& x, int64_t decimals, const std::optional<Tensor>& out) {
        if (decimals == 0) return apply(code, pointer(out), *x);
        static const int same = jit::find_op("positive");
        const Tensor* tensor = (*x).tensor();
        const Tensor number = tensor == nullptr ? apply(same, nullptr, *x) : Tensor();
        const nb::gil_scoped_release released;
        return round_decimals(tensor == nullptr ? number : *tensor, decimals, pointer(out));
      },
      "decimals"_a = 0, "out"_a = nb::none(), ReturnsOut(), doc.c_str());
}

nb::object compute(int code, nb::handle first, nb::handle second) {
  if (!is_operand(first) || !is_operand(second)) return nb::borrow(Py_NotImplemented);
  const auto [a, b] = operands<Operand>(first, second);
  return nb::cast(apply(code, nullptr, *a, *b));
}

/// divmod(first, second).
template <bool is_reflected>
nb::object quotient_and_rest(int, nb::handle self, nb::handle other) {
  static const int quotient = jit::find_op("floor_divide"), rest = jit::find_op("remainder");
  if (!is_operand(other)) return nb::borrow(Py_NotImplemented);
  const nb::handle first = is_reflected ? other : self, second = is_reflected ? self : other;
  return named_call("divmod", [&] {
    return nb::object(
        nb::make_tuple(compute(quotient, first, second), compute(rest, first, second)));
  });
}
constexpr const char* kDivmodStub = "(self, other: ArrayLike, /) -> tuple[Tensor, Tensor]";

nb::object compute_in_place(int code, nb::handle self, nb::handle other) {
  if (!is_operand(other)) return nb::borrow(Py_NotImplemented);
  const auto [a, b] = operands<Operand>(self, other);
  apply(code, (*a).tensor(), *a, *b);
  return nb::borrow(self);
}

/// By ufunc of NumPy the method of a tensor that is `array op tensor`.
const std::map<PyObject*, std::string>& reflected_methods() {
  static const auto* const methods = [] {
    auto* made = new std::map<PyObject*, std::string>;
    const auto add = [made](std::string_view op, std::string_view method) {
      if (op == "pow") op = "power";  // as NumPy 1 has it
      if (op.ends_with("_shift")) op.remove_prefix(std::string_view("bitwise_").size());
      made->emplace(numpy(std::string(op).c_str()).release().ptr(), cat("__", method, "__"));
    };
    for (const auto& [op, method] : kBinaryOperators) add(op, cat("r", method));
    for (const auto& [op, method] : kComparisons) add(op, method);
    const std::pair<const char*, const char*> mirrored[] = {
        {"less", "gt"}, {"less_equal", "ge"}, {"greater", "lt"}, {"greater_equal", "le"}};
    for (const auto& [op, method] : mirrored) {
      (*made)[numpy(op).ptr()] = cat("__", method, "__");
    }
    add("matmul", "rmatmul");
    return made;
  }();
  return *methods;
}

/// NumPy's ufuncs: the operators between an array and a tensor are the tensor's; all else, as
/// `array += tensor`, is NumPy's work on the elements.
nb::object array_ufunc(nb::handle, nb::handle ufunc, const std::string& method,
                       const nb::args& inputs, const nb::kwargs& options) {
  if (!nb::isinstance(ufunc, numpy("ufunc"))) {
    throw DTypeError(
        cat("__array_ufunc__: ufunc: needed is a ufunc of NumPy, given ", describe(ufunc)));
  }
  const bool is_operator = method == "__call__" && options.size() == 0 && inputs.size() == 2 &&
                           !nb::isinstance<Tensor>(inputs[0]) && nb::isinstance<Tensor>(inputs[1]);
  if (is_operator) {
    const auto found = reflected_methods().find(ufunc.ptr());
    if (found != reflected_methods().end()) return inputs[1].attr(found->second.c_str())(inputs[0]);
  }
  nb::list arrays;
  for (nb::handle input : inputs) {
    const bool is_tensor = nb::isinstance<Tensor>(input) && nb::inst_ready(input);
    arrays.append(is_tensor ? numpy("asarray")(for_numpy(nb::cast<const Tensor&>(input)))
                            : nb::borrow(input));
  }
  if (options.contains("out")) {
    for (nb::handle out : nb::tuple(options["out"])) {
      if (nb::isinstance<Tensor>(out)) return nb::borrow(Py_NotImplemented);
    }
  }
  return ufunc.attr(method.c_str())(*arrays, **options);
}

void bind_operators(Class<Tensor> type) {
  for (const auto& [op, method] : kUnaryOperators) {
    type.def(cat("__", method, "__").c_str(), [code = jit::find_op(op)](const Tensor& x) {
      return apply(code, nullptr, Operand(x));
    });
  }
  define_operators(type, "(self, other: ArrayLike, /) -> Tensor", compute, compute_in_place);
  define_operator(type, "divmod", kDivmodStub, 0, quotient_and_rest<false>);
  define_operator(type, "rdivmod", kDivmodStub, 0, quotient_and_rest<true>);
  type.def("__array_ufunc__", &array_ufunc, "ufunc"_a, "method"_a, "inputs"_a, "options"_a,
           nb::sig("def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any"
                   ") -> Any"));
}

nb::typed<nb::list, Record> table() {
  return records_of(jit::op_table(), [](const OpInfo& op) {
    nb::list dtypes, parameters;
    for (const DType dtype : jit::argument_dtypes(op)) dtypes.append(name(dtype));
    for (int i = 0; i < op.arity; ++i) parameters.append(op.parameters[i]);
    return record_of("name", op.name, "doc", op.doc, "parameters", parameters, "dtypes", dtypes,
                     "result", describe_rule(op.rule), "ulps",
                     nb::make_tuple(op.ulps.float32, op.ulps.float64));
  });
}

/// Other names under which NumPy's and PyTorch's users look for an operation.
constexpr OperatorName kAliases[] = {{"abs", "absolute"},
                                     {"pow", "power"},
                                     {"divide", "true_divide"},
                                     {"remainder", "mod"},
                                     {"bitwise_invert", "bitwise_not"},
                                     {"conj", "conjugate"}};

}  // namespace

bool is_operand(nb::handle object) {
  if (nb::isinstance<Tensor>(object)) return true;
  if (nb::isinstance<dist::DistTensor>(object)) return false;
  return nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object) ||
         is_number_or_array(object);
}

void bind_elementwise(Module& m) {
  const auto rows = jit::op_table();
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string_view name = rows[i].name;
    if (name != "clip" && name != "round") bind_function(m, rows[i].name, static_cast<int>(i));
  }
  bind_clip(m, "clip");
  bind_clip(m, "clamp");
  bind_round(m);
  for (const auto& [op, alias] : kAliases) bind_function(m, alias, jit::find_op(op));
  bind_operators(nb::borrow<Class<Tensor>>(m.attr("Tensor")));
  m.def("elementwise_table", &table,
        "Every elementwise operation: name, doc, parameters, dtypes of the arguments, how the "
        "result's "
        "dtype follows, and for functions of one real argument the largest errors in float32 and "
        "float64 on a CPU, in units in the last place (0: exact).");
}

}  // namespace cuop::python
