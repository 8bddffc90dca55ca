#include <algorithm>

#include "binders.h"
#include "cuop/core/byte_size.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/ops/einsum/einsum.h"
#include "cuop/ops/einsum/equation.h"
#include "cuop/ops/einsum/tensordot.h"
#include "einsum_arguments.h"

namespace cuop::python {

namespace {

using Out = std::optional<Tensor>;

constexpr const char* kEinsumDoc =
    R"(What an equation says of the operands, by NumPy's grammar: 'ij,jk->ik', 'ii->i', '...ij->...ji'.

Also einsum(a, [0, 1], b, [1, 2], [0, 2]), with numbers for indices. `optimize` says in which order
pairs are multiplied: 'auto' (True), 'optimal', 'greedy', 'random-greedy', 'in-order' (False), a
path of einsum_path, NumPy or opt_einsum, or a pair (name, elements that no intermediate result has
more of; 'max_input': than the largest operand). `memory_limit`: bytes, or a size as '64 MiB', that
the call may take at a time, its result included (`out` is not); where it would take more, indices
are sliced: all pairs are multiplied for one piece of them after the other and added up. The result
has the promoted dtype of all operands: 16-bit floats round after each pair, integers wrap, bool is
"or" of "and". Of one operand, of which nothing is summed, it is a view. Raises ExecutionError,
ShapeError, MemoryError (which names the least limit that can be kept to).)";

bool is_text(nb::handle object) { return PyUnicode_Check(object.ptr()) != 0; }

[[noreturn]] void refuse_optimize(nb::handle given, const Raised& why = nullptr) {
  refuse<ExecutionError>(cat("einsum: optimize is ", message_of(given),
                             "; allowed are True, False, the name of a search, a path as [(0, 1), "
                             "(0, 1)], or a pair (name, most elements of an intermediate result)"),
                         why);
}

/// An operand or the indices of one, when indices are numbers.
struct Request {
  std::string equation;
  std::vector<nb::object> operands;
};

std::string letter_of(int64_t number) {
  if (number < 0 || number >= kMostEinsumIndices) {
    throw ExecutionError(
        cat("einsum: index ", number, "; numbers of indices are 0 to ", kMostEinsumIndices - 1));
  }
  return index_letter(static_cast<int>(number));
}

std::string numbered_term(nb::handle indices) {
  const bool are_listed = !is_text(indices) && PySequence_Check(indices.ptr()) != 0;
  const nb::object items = are_listed ? nb::steal(PyObject_GetIter(indices.ptr())) : nb::object();
  if (!items.is_valid()) {
    const Raised why = are_listed ? wrong_kind() : nullptr;  // as an array without axes says
    refuse<ExecutionError>(
        cat("einsum: ", without_zeros(message_of(indices)),
            " stands where the indices of an operand are needed: a list of numbers "
            "and at most one Ellipsis; an equation comes first"),
        why);
  }
  std::string term;
  int count = 0;
  for (nb::handle index : items) {
    if (++count > kMaxDims + 1) {  // some sequences never end
      throw ExecutionError(cat("einsum: more than ", kMaxDims + 1,
                               " indices of one operand; tensors have up to ", kMaxDims,
                               " dimensions"));
    }
    if (index.ptr() == Py_Ellipsis) {
      term += "...";
    } else {
      term += letter_of(named_argument<Shape>(index, "operands")[0]);
    }
  }
  return term;
}

Request request_of(nb::handle equation, const nb::args& rest) {
  Request request;
  if (is_text(equation)) {
    request.equation = without_zeros(nb::cast<std::string>(equation));
    for (nb::handle operand : rest) request.operands.push_back(nb::borrow(operand));
    return request;
  }
  std::vector<nb::object> all{nb::borrow(equation)};
  for (nb::handle each : rest) all.push_back(nb::borrow(each));
  for (size_t i = 0; i + 1 < all.size(); i += 2) {
    request.operands.push_back(all[i]);
    request.equation += (i > 0 ? "," : "") + numbered_term(all[i + 1]);
  }
  if (request.operands.empty()) {
    throw ExecutionError(
        "einsum: one argument was given, which is no text; needed are an equation and operands, or "
        "operands, each followed by the list of its indices");
  }
  if (all.size() % 2 == 1 && all.size() > 1) request.equation += "->" + numbered_term(all.back());
  return request;
}

int64_t largest(const std::vector<Shape>& shapes) {
  int64_t most = 0;
  for (const Shape& shape : shapes) most = std::max(most, element_count(shape));
  return most;
}

std::vector<Tensor> tensors_of(const Request& request) {
  std::vector<Tensor> tensors;
  for (const nb::object& operand : request.operands) {
    tensors.push_back(named_argument<Tensor>(operand, "operands"));
  }
  return tensors;
}

DType promoted(const std::vector<Tensor>& tensors) {
  DType dtype = tensors.at(0).dtype();
  for (const Tensor& tensor : tensors) dtype = promote(dtype, tensor.dtype());
  return dtype;
}

std::vector<Shape> shapes_of(const Request& request, bool are_shapes) {
  std::vector<Shape> shapes;
  if (!are_shapes) {
    for (const Tensor& tensor : tensors_of(request)) shapes.push_back(tensor.shape());
    return shapes;
  }
  for (const nb::object& shape : request.operands) {
    shapes.push_back(named_argument<Shape>(shape, "operands"));
    element_count(shapes.back());
  }
  return shapes;
}

nb::list path_list(const LinearPath& path) {
  nb::list list;
  for (const std::vector<int64_t>& entry : path) {
    nb::list positions;
    for (const int64_t position : entry) positions.append(position);
    list.append(nb::tuple(positions));
  }
  return list;
}

LinearPath to_path(nb::handle given) {
  LinearPath path;
  for (nb::handle entry : nb::borrow<nb::sequence>(given)) {
    if (is_text(entry)) {
      if (!path.empty() || nb::cast<std::string>(entry) != "einsum_path") refuse_optimize(given);
      continue;
    }
    if (PySequence_Check(entry.ptr()) == 0) refuse_optimize(given);
    if (path.size() == 2 * kMostEinsumOperands) {
      throw ExecutionError(cat("einsum: optimize is a path of more than ", 2 * kMostEinsumOperands,
                               " entries; of ", kMostEinsumOperands,
                               " operands no path needs more"));
    }
    path.push_back(named_argument<Shape>(entry, "optimize").to_vector());
  }
  return path;
}

void bind_path_class(Module& m) {
  Class<EinsumPath>(m, "EinsumPath",
                    "The order in which an einsum multiplies, and what that costs; str() is a "
                    "table. The names of opt_einsum's PathInfo.")
      .def_prop_ro(
          "path", [](const EinsumPath& p) { return path_list(p.path); },
          nb::sig("def path(self) -> list[tuple[int, ...]]"),
          "For each pair its positions in the list of what is left; what it makes is put at the "
          "end.")
      .def_ro("eq", &EinsumPath::equation)
      .def_ro("steps", &EinsumPath::steps,
              "Each as an equation; sums of what one operand has alone come first.")
      .def_prop_ro(
          "opt_cost", [](const EinsumPath& p) { return p.costs.flops; },
          "Flops in this order: of a pair the product of all sizes, twice where it sums.")
      .def_prop_ro(
          "naive_cost", [](const EinsumPath& p) { return p.costs.naive_flops; },
          "Flops of one nest of loops over all indices.")
      .def_prop_ro("speedup", &EinsumPath::speedup, "naive_cost / opt_cost.")
      .def_prop_ro(
          "largest_intermediate", [](const EinsumPath& p) { return p.costs.largest_intermediate; },
          "Elements of the largest result of a step.")
      .def_ro("peak_bytes", &EinsumPath::peak_bytes,
              "Bytes that the call takes at a time beside its operands, its result included.")
      .def_ro("slices", &EinsumPath::slices,
              "How often all pairs are multiplied, 1 where memory suffices.")
      .def_prop_ro(
          "sliced",
          [](const EinsumPath& p) {
            nb::dict pieces;
            for (const auto& [index, count] : p.sliced) pieces[nb::cast(index)] = count;
            return pieces;
          },
          nb::sig("def sliced(self) -> dict[str, int]"),
          "The indices that are sliced and into how many pieces each is cut.")
      .def_ro("added_flops", &EinsumPath::added_flops,
              "Flops that slices add to opt_cost: what does not depend on a sliced index is made "
              "again for each piece.")
      .def("__str__", &EinsumPath::to_string)
      .def("__repr__", &EinsumPath::to_string);
}

/// Of NumPy's pair (name, limit).
std::optional<double> most_elements(nb::handle limit, std::optional<int64_t> largest_input) {
  if (limit.is_none()) return std::nullopt;
  if (!is_text(limit)) {
    const double elements = named_argument<Scalar>(limit, "optimize").to_double();
    if (elements >= 0) return elements;
    throw ExecutionError(cat("einsum: optimize limits intermediate results to ", elements,
                             "; allowed are numbers of elements, 0 or more"));
  }
  if (nb::cast<std::string>(limit) != "max_input") {
    throw ExecutionError(cat("einsum: optimize limits intermediate results to \"",
                             nb::cast<std::string>(limit),
                             "\"; allowed are a number of elements and \"max_input\""));
  }
  if (largest_input) return static_cast<double>(*largest_input);
  throw ExecutionError(
      "einsum: optimize limits intermediate results to \"max_input\", but not every rank knows "
      "the operands' sizes; allowed is a number of elements");
}

}  // namespace

PathOptions path_options(nb::handle optimize, nb::handle memory_limit,
                         std::optional<int64_t> largest_input) {
  PathOptions options;
  nb::object elements = nb::none();
  if (PyBool_Check(optimize.ptr()) != 0) {
    options.order = optimize.is(nb::handle(Py_True)) ? PathSearch::kAuto : PathSearch::kInOrder;
  } else if (is_text(optimize)) {
    options.order = parse_path_search(nb::cast<std::string>(optimize));
  } else if (PySequence_Check(optimize.ptr()) == 0) {
    refuse_optimize(optimize);
  } else if (PySequence_Size(optimize.ptr()) < 0) {
    refuse_optimize(optimize, wrong_kind());
  } else if (const auto list = nb::borrow<nb::sequence>(optimize);
             nb::len(list) == 2 && is_text(nb::object(list[0])) &&
             nb::cast<std::string>(nb::object(list[0])) != "einsum_path") {
    options.order = parse_path_search(nb::cast<std::string>(nb::object(list[0])));
    elements = list[1];
  } else {
    options.order = to_path(optimize);
  }
  options.largest_intermediate = most_elements(elements, largest_input);
  options.memory_limit = limit_bytes(memory_limit, "einsum");
  return options;
}

std::optional<int64_t> limit_bytes(nb::handle memory_limit, const char* who) {
  if (memory_limit.is_none()) return std::nullopt;
  if (is_text(memory_limit)) {
    return parse_bytes(nb::cast<std::string>(memory_limit), cat(who, ": memory_limit"));
  }
  const bool is_number = PyIndex_Check(memory_limit.ptr()) != 0;
  const int64_t bytes =
      is_number ? named_argument<Shape>(memory_limit, "memory_limit")[0] : int64_t{-1};
  if (bytes >= 0) return bytes;
  throw ExecutionError(cat(who, ": memory_limit is ", message_of(memory_limit),
                           "; allowed are None, a number of bytes, 0 or more, and a size as "
                           "\"64 MiB\""));
}

TensordotAxes tensordot_axes(nb::handle axes, const char* argument) {
  if (PyIndex_Check(axes.ptr()) != 0) {
    return {named_argument<Shape>(axes, argument)[0], {}, false};
  }
  const bool is_listed = nb::isinstance<nb::sequence>(axes);
  const Py_ssize_t length = is_listed ? PySequence_Size(axes.ptr()) : 0;
  if (length != 2) {
    const Raised why = length < 0 ? wrong_kind() : nullptr;
    refuse<ShapeError>(
        cat("tensordot: ", argument, " must be a number of axes or a pair (axes of a, axes of b)"),
        why);
  }
  return {0,
          {named_argument<Axes>(axes[0], argument).values,
           named_argument<Axes>(axes[1], argument).values},
          true};
}

void bind_einsum(Module& m) {
  bind_path_class(m);
  m.def(
      "einsum",
      [](nb::handle equation, const nb::args& operands, nb::handle optimize,
         nb::handle memory_limit, Out out) {
        const Request request = request_of(equation, operands);
        const std::vector<Tensor> tensors = tensors_of(request);
        std::vector<Shape> shapes;
        for (const Tensor& tensor : tensors) shapes.push_back(tensor.shape());
        const PathOptions options = path_options(optimize, memory_limit, largest(shapes));
        const nb::gil_scoped_release released;
        return einsum(request.equation, tensors, options, pointer(out));
      },
      "equation"_a, "operands"_a, "optimize"_a = "auto", "memory_limit"_a = nb::none(),
      "out"_a = nb::none(), ReturnsOut(),
      nb::sig("def einsum(equation: object, *operands: object, optimize: object = 'auto', "
              "memory_limit: int | str | None = None, out: Tensor | None = None) -> Tensor"),
      kEinsumDoc);
  m.def(
      "einsum_path",
      [](nb::handle equation, const nb::args& operands, nb::handle optimize,
         nb::handle memory_limit, bool shapes, std::optional<Arg<DType>> dtype) {
        const Request request = request_of(equation, operands);
        DType computed = DType::kFloat32;
        if (!shapes && !request.operands.empty()) computed = promoted(tensors_of(request));
        if (dtype) computed = **dtype;
        const std::vector<Shape> given = shapes_of(request, shapes);
        const PathOptions options = path_options(optimize, memory_limit, largest(given));
        const EinsumPath path =
            without_gil([&] { return einsum_path(request.equation, given, options, computed); });
        return nb::make_tuple(path_list(path.path), path);
      },
      "equation"_a, "operands"_a, "optimize"_a = "auto", "memory_limit"_a = nb::none(),
      "shapes"_a = false, "dtype"_a = nb::none(),
      nb::sig(
          "def einsum_path(equation: object, *operands: object, optimize: object = 'auto', "
          "memory_limit: int | str | None = None, shapes: bool = False, dtype: DTypeLike | None "
          "= None) -> tuple[list[tuple[int, ...]], EinsumPath]"),
      "The path of such an einsum, as `optimize` takes it, and what it costs (EinsumPath). With "
      "shapes=True the operands are shapes. Bytes are those of operands that lie row by row in "
      "`dtype` (None: the promoted one of the operands, float32 of shapes).");
  m.def(
      "tensordot",
      [](Arg<Tensor> a, Arg<Tensor> b, nb::object axes, Out out) {
        const TensordotAxes given = tensordot_axes(axes, "axes");
        const PairedAxes pairs =
            given.are_listed ? given.lists : last_and_first_axes(given.count, a->ndim(), b->ndim());
        const nb::gil_scoped_release released;
        return tensordot(a, b, pairs.of_a, pairs.of_b, pointer(out));
      },
      "a"_a, "b"_a, "axes"_a = 2, nb::kw_only(), "out"_a = nb::none(), ReturnsOut(),
      "Sum over paired axes: the last and first `axes` ones, or (axes of a, axes of b). The free "
      "axes of a come first, then those of b.");
}

}  // namespace cuop::python
