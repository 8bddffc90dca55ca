// x[...] and the operators that read or write elements by index tensors and masks.
#include "binders.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/gather.h"
#include "cuop/ops/index/indexing.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/reduce/reduce.h"
#include "define_both.h"
#include "exchange.h"
#include "index_arguments.h"
#include "shared_methods.h"

namespace cuop::python {

namespace {

int64_t to_integer(nb::handle object) {
  const Py_ssize_t value = PyNumber_AsSsize_t(object.ptr(), PyExc_IndexError);
  if (value == -1 && PyErr_Occurred() != nullptr) {
    if (PyErr_ExceptionMatches(PyExc_IndexError) == 0) nb::raise_python_error();
    PyErr_Clear();
    const nb::object integer = nb::steal(PyNumber_Index(object.ptr()));
    if (!integer.is_valid()) nb::raise_python_error();
    throw IndexError(cat("index: ", describe(integer), " is outside every axis"));
  }
  return value;
}

std::optional<int64_t> slice_bound(nb::handle object) {
  if (object.is_none()) return std::nullopt;
  if (PyIndex_Check(object.ptr()) == 0) {
    throw DTypeError("index: the bounds of a slice must be integers or None");
  }
  // Bounds beyond 64 bits mean the end of the axis, as in Python.
  const Py_ssize_t value = PyNumber_AsSsize_t(object.ptr(), nullptr);
  if (value == -1 && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return value;
}

Tensor to_index_tensor(Device device, nb::handle object, const char* argument) {
  const Tensor tensor = named_argument<Tensor>(object, argument);
  // An empty list has no dtype of its own: it names nothing.
  const bool is_list = nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object);
  if (is_list && tensor.size() == 0) return empty(tensor.shape(), DType::kInt64, device);
  return tensor;
}

Index to_index(Device device, nb::handle object) {
  if (object.is_none()) return NewAxisIndex{};
  if (object.is(nb::handle(Py_Ellipsis))) return EllipsisIndex{};
  if (nb::isinstance<nb::bool_>(object)) {
    return full({}, nb::cast<bool>(object), DType::kBool, device);
  }
  if (PyLong_Check(object.ptr()) != 0) return to_integer(object);
  if (PySlice_Check(object.ptr()) != 0) {
    const auto step = slice_bound(object.attr("step"));
    return SliceIndex{slice_bound(object.attr("start")), slice_bound(object.attr("stop")),
                      step.value_or(1)};
  }
  const Tensor tensor = to_index_tensor(device, object, "key");
  // NumPy's integer scalars index like Python's; so do tensors of one element without axes.
  if (tensor.ndim() == 0 && is_integer(tensor.dtype()) && PyIndex_Check(object.ptr()) != 0 &&
      !nb::isinstance<Tensor>(object)) {
    return to_integer(object);
  }
  return tensor;
}

Tensor get(const Tensor& self, nb::handle key) {
  if (PyLong_CheckExact(key.ptr()) && self.ndim() > 0) return select(self, 0, to_integer(key));
  const std::vector<Index> index = to_indices(key, self.device());
  const nb::gil_scoped_release released;
  return get_item(self, index);
}

void set(const Tensor& self, nb::handle key, nb::handle value) {
  const std::vector<Index> index = to_indices(key, self.device());
  // Python's numbers take the tensor's dtype, so that they are not rounded on the way.
  const Tensor source =
      is_python_number(value)
          ? scalar_tensor("index assignment", named_argument<Scalar>(value, "value"), self.dtype(),
                          self.device())
          : named_values(value, self.dtype(), "value");
  const nb::gil_scoped_release released;
  set_item(self, index, source);
}

/// What is about to be written to `target`: a number takes its dtype, which must hold it.
Tensor as_tensor(const char* who, const Operand& value, const Tensor& target) {
  if (value.tensor() != nullptr) return *value.tensor();
  return scalar_tensor(who, *value.number(), target.dtype(), target.device());
}

nb::object counted(const Arg<Tensor>& x, const std::optional<Arg<Axes>>& axis, bool keepdims) {
  if (!axis && !keepdims) {
    return nb::cast(without_gil([&] { return count_nonzero(x); }));
  }
  return nb::cast(named_call("count_nonzero", [&] {
    const nb::gil_scoped_release released;
    // An empty tuple means no axis, as in NumPy: each element alone.
    if (axis && (*axis)->values.empty()) return cast(cast(x, DType::kBool), DType::kInt64);
    return count_nonzero(x, axis ? (*axis)->values : std::vector<int64_t>{}, keepdims);
  }));
}

void bind_gather(Module& m) {
  auto type = nb::borrow<Class<Tensor>>(m.attr("Tensor"));
  const auto take_at = [](Arg<Tensor> x, nb::handle indices, std::optional<int64_t> axis,
                          std::optional<Tensor> out) {
    const Tensor list = to_index_tensor(x->device(), indices, "indices");
    const nb::gil_scoped_release released;
    return take(x, list, axis, pointer(out));
  };
  constexpr const char* kTakeDoc =
      "Slices of x at `indices` along `axis` (of the flattened x without one). Negative indices "
      "count from the end. Raises IndexError.";
  m.def("take", take_at, "x"_a, "indices"_a, "axis"_a = nb::none(), "out"_a = nb::none(),
        ReturnsOut(),
        nb::sig("def take(x: ArrayLike, indices: ArrayLike, axis: int | None = None, out: Tensor | "
                "None = None) -> Tensor"),
        kTakeDoc);
  type.def("take", take_at, "indices"_a, "axis"_a = nb::none(), "out"_a = nb::none(), ReturnsOut(),
           nb::sig("def take(self, indices: ArrayLike, axis: int | None = None, out: Tensor | None "
                   "= None) -> Tensor"),
           kTakeDoc);
  define_both(
      m, "take_along_axis",
      [](Arg<Tensor> x, Arg<Tensor> indices, int64_t axis, std::optional<Tensor> out) {
        return take_along_axis(x, indices, axis, pointer(out));
      },
      "indices"_a, "axis"_a = -1, "out"_a = nb::none(), ReturnsOut(), Released(),
      "result[..., j, ...] = x[..., indices[..., j, ...], ...]; other axes broadcast.");
  define_both(
      m, "gather",
      [](Arg<Tensor> x, int64_t axis, Arg<Tensor> indices, std::optional<Tensor> out) {
        return gather(x, axis, indices, pointer(out));
      },
      "axis"_a, "indices"_a, nb::kw_only(), "out"_a = nb::none(), ReturnsOut(), Released(),
      "result[..., j, ...] = x[..., indices[..., j, ...], ...] along `axis`, as PyTorch's gather: "
      "nothing broadcasts, and along the other axes the indices may be shorter than x.");
  m.def(
      "put_along_axis",
      [](const Tensor& x, Arg<Tensor> indices, Arg<Operand> values, int64_t axis) {
        put_along_axis(x, indices, as_tensor("put_along_axis", *values, x), axis);
      },
      "x"_a, "indices"_a, "values"_a, "axis"_a, Released(),
      "x[..., indices[..., j, ...], ...] = values[..., j, ...] in place.");
  define_both(
      m, "masked_select", [](Arg<Tensor> x, Arg<Tensor> mask) { return masked_select(x, mask); },
      "mask"_a, Released(),
      "The elements of x where `mask` (bool, broadcast to x) is true, as one axis.");
  define_both(
      m, "masked_fill",
      [](Arg<Tensor> x, Arg<Tensor> mask, Arg<Operand> value, std::optional<Tensor> out) {
        return masked_fill(x, mask, as_tensor("masked_fill", *value, *x), pointer(out));
      },
      "mask"_a, "value"_a, "out"_a = nb::none(), ReturnsOut(), Released(),
      "A copy of x with `value` (broadcast to x) where `mask` is true.");
  const auto positions = [](Arg<Tensor> x) { return nb::tuple(nb::cast(nonzero(x))); };
  constexpr const char* kNonzeroDoc =
      "For each axis the int64 positions of the elements that are not zero.";
  m.def("nonzero", positions, "x"_a, nb::sig("def nonzero(x: ArrayLike) -> tuple[Tensor, ...]"),
        kNonzeroDoc);
  type.def("nonzero", positions, nb::sig("def nonzero(self) -> tuple[Tensor, ...]"), kNonzeroDoc);
  m.def("count_nonzero", &counted, "x"_a, "axis"_a = nb::none(), nb::kw_only(),
        "keepdims"_a = false,
        nb::sig("def count_nonzero(x: ArrayLike, axis: AxesLike | None = None, *, keepdims: bool = "
                "False) -> int | Tensor"),
        "How many elements are not zero, as an int; with an `axis`, or keepdims, an int64 tensor "
        "of their numbers over it. Raises ShapeError.");
}

}  // namespace

std::vector<Index> to_indices(nb::handle key, Device device) {
  std::vector<Index> list;
  if (nb::isinstance<nb::tuple>(key)) {
    for (nb::handle entry : nb::borrow<nb::tuple>(key)) list.push_back(to_index(device, entry));
  } else {
    list.push_back(to_index(device, key));
  }
  return list;
}

void bind_index(Module& m) {
  nb::borrow<Class<Tensor>>(m.attr("Tensor"))
      .def("__getitem__", &get, "key"_a.none(),
           "NumPy indexing: integers, slices, None, ... give a view; masks and integer arrays a "
           "copy. Raises IndexError for positions outside an axis and for a mask of another shape, "
           "DTypeError for a key of another kind.")
      .def("__setitem__", &set, "key"_a.none(), "value"_a,
           "Assigns where the index points; the value broadcasts and takes the tensor's dtype. "
           "Raises OverflowError when that cannot hold a number.")
      .def("__iter__", &iterate<Tensor>, "The views along the first axis.")
      .def("__len__", &length_of<Tensor>);
  bind_gather(m);
}

}  // namespace cuop::python
