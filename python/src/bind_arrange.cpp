// Joining, repeating, shifting and padding.
#include "binders.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/index/triangle.h"
#include "cuop/ops/index/view.h"
#include "define_both.h"

namespace cuop::python {

namespace {

using Tensors = std::vector<Arg<Tensor>>;
using Widths = std::vector<std::pair<int64_t, int64_t>>;

std::vector<Tensor> plain(const Tensors& tensors) { return {tensors.begin(), tensors.end()}; }

/// An int, a pair (before, after), or one pair an axis.
Widths to_widths(nb::handle object) {
  const auto integers = [](nb::handle h) { return named_argument<Shape>(h, "pad_width"); };
  const auto pair = [&](const Shape& values) {
    if (values.ndim() != 1 && values.ndim() != 2) {
      throw ShapeError(cat("pad: pad_width: needed are an integer or pairs, given ", values));
    }
    return std::pair(values[0], values.back());
  };
  const bool is_list = PyIndex_Check(object.ptr()) == 0 && PySequence_Check(object.ptr()) != 0 &&
                       !nb::isinstance<nb::str>(object);
  const Py_ssize_t length = is_list ? PySequence_Size(object.ptr()) : 0;
  if (length < 0) wrong_kind();  // refused below
  const bool is_nested = length > 0 && PyIndex_Check(nb::object(object[nb::int_(0)]).ptr()) == 0;
  if (!is_nested) return {pair(integers(object))};
  Widths widths;
  for (nb::handle each : nb::borrow<nb::sequence>(object)) widths.push_back(pair(integers(each)));
  return widths;
}

/// How often each element is repeated, on the host.
Tensor to_counts(const Tensor& given) {
  const bool is_empty = given.size() == 0;  // as a list, which has no dtype of its own
  if (!is_integer(given.dtype()) && !is_empty) {
    throw DTypeError(cat("repeat: repeats: needed are integers, given ", given.dtype()));
  }
  if (given.ndim() > 1) {
    throw ShapeError(cat("repeat: repeats has shape ", given.shape(),
                         "; needed is a number, or one an element"));
  }
  return contiguous(cast(to_device(given, kCpu), DType::kInt64));
}

void bind_joins(Module& m) {
  m.def(
      "concatenate",
      [](const Tensors& tensors, std::optional<int64_t> axis, std::optional<Tensor> out) {
        std::vector<Tensor> list = plain(tensors);
        if (!axis) {
          for (Tensor& each : list) each = flatten(each);
        }
        return concatenate(list, axis.value_or(0), pointer(out));
      },
      "tensors"_a, "axis"_a = 0, "out"_a = nb::none(), ReturnsOut(), Released(),
      "Joins tensors along an axis that they have, or with None flattened ones; dtypes promote. "
      "Raises ShapeError.");
  m.attr("concat") = m.attr("concatenate");
  m.def(
      "stack",
      [](const Tensors& tensors, int64_t axis, std::optional<Tensor> out) {
        return stack(plain(tensors), axis, pointer(out));
      },
      "tensors"_a, "axis"_a = 0, "out"_a = nb::none(), ReturnsOut(), Released(),
      "Joins tensors of one shape along a new axis. Raises ShapeError.");
}

}  // namespace

void bind_arrange(Module& m) {
  bind_joins(m);
  m.def(
      "pad",
      [](Arg<Tensor> x, nb::handle widths, const std::string& mode, Arg<Scalar> value,
         std::optional<Tensor> out) {
        const Widths checked = to_widths(widths);
        const nb::gil_scoped_release released;
        return pad(x, checked, parse_pad_mode(mode), value, pointer(out));
      },
      "x"_a, "pad_width"_a, "mode"_a = "constant", "constant_values"_a = 0, "out"_a = nb::none(),
      ReturnsOut(),
      "Extends the axes: `pad_width` is an integer, (before, after), or one pair an axis; `mode` "
      "is "
      "constant, edge, reflect, symmetric or wrap. Raises ShapeError for negative widths.");
  define_both(
      m, "flip",
      [](Arg<Tensor> x, std::optional<Arg<Shape>> axis) { return flip(x, converted(axis)); },
      "axis"_a = nb::none(), "View with the order reversed along the axes (None: all).");
  define_both(
      m, "roll",
      [](Arg<Tensor> x, Arg<Shape> shift, std::optional<Arg<Axes>> axis) {
        const std::span<const int64_t> shifts(shift->begin(), shift->end());
        return axis ? roll(x, shifts, (*axis)->values) : roll(x, shifts);
      },
      "shift"_a, "axis"_a = nb::none(), Released(),
      "Shifts elements cyclically along the axes (None: of the flattened tensor).");
  define_both(
      m, "tile",
      [](Arg<Tensor> x, Arg<Shape> repeats) {
        return named_call("tile: repeats", [&] {
          return tile(x, {repeats->begin(), repeats->end()});
        });
      },
      "repeats"_a, Released(), "The whole tensor several times along each axis.");
  m.def(
      "repeat",
      [](Arg<Tensor> x, Arg<Unplaced> repeats, std::optional<int64_t> axis) {
        const Tensor counts = to_counts(repeats->tensor);
        const std::span numbers(counts.data<int64_t>(), static_cast<size_t>(counts.size()));
        return repeat(x, numbers, axis);
      },
      "x"_a, "repeats"_a, "axis"_a = nb::none(), Released(),
      "Each element `repeats` times along `axis` (None: of the flattened tensor); several numbers "
      "say it of each element there. Raises ShapeError.");
  using Triangle = Tensor (*)(const Tensor&, int64_t, const Tensor*);
  const auto define_triangle = [&m](const char* name, Triangle triangle, const char* doc) {
    define_both(
        m, name,
        [triangle](Arg<Tensor> x, int64_t k, std::optional<Tensor> out) {
          return triangle(x, k, pointer(out));
        },
        "k"_a = 0, nb::kw_only(), "out"_a = nb::none(), ReturnsOut(), Released(), doc);
  };
  define_triangle("tril", &tril,
                  "x with zeros above the k-th diagonal of its matrices, the last two axes. Raises "
                  "ShapeError.");
  define_triangle("triu", &triu,
                  "x with zeros below the k-th diagonal of its matrices, the last two axes. Raises "
                  "ShapeError.");
}

}  // namespace cuop::python
