// The Tensor class: what it is, moving data in and out. Arithmetic, indexing and reductions are
// added by their families.
#include <algorithm>
#include <cstring>

#include "binders.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/long_loop.h"
#include "cuop/core/text.h"
#include "cuop/operators/windows.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "exchange.h"
#include "shared_methods.h"

namespace cuop::python {

namespace {

void copy_from(const Tensor& self, nb::handle array) {
  const Tensor source = named_values(array, self.dtype(), "array");
  const nb::gil_scoped_release released;
  if (!(source.shape() == self.shape())) {
    throw ShapeError(
        cat("copy_from: the source has shape ", source.shape(), ", the tensor ", self.shape()));
  }
  named_call("copy_from: array", [&] { copy_across(self, source); });
}

/// to(dtype), to(device), to(device, dtype) in any order or by name.
Tensor to(const Tensor& self, const nb::args& targets, std::optional<Arg<DType>> dtype,
          std::optional<Arg<Device>> device) {
  DType new_dtype = value_or(dtype, self.dtype());
  Device new_device = value_or(device, self.device());
  for (nb::handle target : targets) {
    Raised why;  // of an object without a text, which names no device
    const std::string text = text_in(target, why).value_or("");
    const bool is_device =
        nb::isinstance<PyDevice>(target) || text.starts_with("cpu") || text.starts_with("cuda");
    if (is_device) {
      new_device = named_argument<Device>(target, "args");
    } else {
      new_dtype = named_argument<DType>(target, "args");
    }
  }
  const nb::gil_scoped_release released;
  return to_device(cast(self, new_dtype), new_device);
}

nb::object only_element(const Tensor& self, const char* who) {
  check_one_element(self, who);
  return to_python_number(self);
}

nb::object real_item(const Tensor& self, const char* who) {
  if (is_complex(self.dtype())) {
    throw DTypeError(cat(who, ": a ", self.dtype(),
                         " tensor is no real number; use complex() or "
                         ".item(), or take its real part with cuop.real"));
  }
  return only_element(self, who);
}

/// An array as nested lists. NumPy makes those of a part without hearing an interrupt.
nb::object lists_of(nb::handle array) {
  const auto size = nb::cast<int64_t>(array.attr("size"));
  if (size <= kLoopPiece) return array.attr("tolist")();
  const auto length = static_cast<int64_t>(nb::len(array));
  const int64_t each = size / length, step = std::max<int64_t>(1, kLoopPiece / each);
  nb::list all;
  for (int64_t i = 0; i < length; i += step) {
    check_interrupt();
    if (each > kLoopPiece) {
      all.append(lists_of(array[i]));
    } else {
      all.extend(array[nb::slice(i, std::min(length, i + step), int64_t{1})].attr("tolist")());
    }
  }
  return all;
}

/// What pickle needs to make the tensor again: the elements in row-major order, and what they are.
nb::tuple reduce(const Tensor& self) {
  const Tensor host = without_gil([&] { return contiguous(to_device(self, kCpu)); });
  const nb::bytes elements(host.data(), static_cast<size_t>(host.nbytes()));
  return nb::make_tuple(
      nb::module_::import_("cuop.tensors").attr("_tensor_of_bytes"),
      nb::make_tuple(elements, to_tuple(self.shape()), name(self.dtype()), cat(self.device())));
}

Tensor tensor_of_bytes(const nb::bytes& elements, const Arg<Shape>& shape, const Arg<DType>& dtype,
                       const Arg<Device>& device) {
  const Tensor host = empty(shape, dtype);
  if (static_cast<int64_t>(elements.size()) != host.nbytes()) {
    throw ShapeError(cat("pickle: ", elements.size(), " bytes were stored, a tensor of shape ",
                         host.shape(), " and dtype ", host.dtype(), " has ", host.nbytes()));
  }
  if (host.nbytes() > 0) std::memcpy(host.data(), elements.data(), elements.size());
  return to_device(host, device);
}

/// Copies of the first and last parts of long axes to `to`, which has as many as it shows.
void copy_ends(const Tensor& to, const Tensor& from, int axis, int64_t shown) {
  if (axis == from.ndim()) return copy_into(to, from);
  if (to.shape(axis) == from.shape(axis)) return copy_ends(to, from, axis + 1, shown);
  const auto part = [axis](const Tensor& t, int64_t start, int64_t length) {
    return t.with_layout(slice(t.layout(), axis, start, length, 1));
  };
  const int64_t front = to.shape(axis) - shown, end = from.shape(axis) - shown;
  copy_ends(part(to, 0, front), part(from, 0, front), axis + 1, shown);
  copy_ends(part(to, front, shown), part(from, end, shown), axis + 1, shown);
}

/// What NumPy prints as it prints `self`: of a tensor that it would shorten, the ends of each axis
/// and one element more, which it leaves out in favour of its dots.
Tensor printed_part(const Tensor& self, int64_t shown) {
  Shape shape = self.shape();
  for (int64_t& size : shape) size = std::min(size, 2 * shown + 1);
  const Tensor part = empty(shape, self.dtype(), self.device());
  copy_ends(part, self, 0, shown);
  return part;
}

std::string representation(const Tensor& self) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  const nb::object options = numpy.attr("get_printoptions")();
  const bool is_short = static_cast<double>(self.size()) <= nb::cast<double>(options["threshold"]);
  const auto shown = is_short ? 0 : nb::cast<int64_t>(options["edgeitems"]);
  const Tensor part = is_short ? self : printed_part(self, shown);
  const nb::object values = to_numpy(for_numpy(part));
  const nb::object threshold = is_short ? nb::object(options["threshold"]) : nb::int_(0);
  const nb::object text = numpy.attr("array2string")(
      values, "separator"_a = ", ", "prefix"_a = "tensor(", "threshold"_a = threshold);
  const bool tells_shape = self.size() > 0 || self.ndim() == 1;  // else its text does not
  return cat("tensor(", message_of(text), tells_shape ? "" : cat(", shape=", self.shape()),
             ", dtype=", self.dtype(),
             self.device().is_cpu() ? "" : cat(", device='", self.device(), "'"), ")");
}

/// view(sizes...), view(shape), view(shape, offset=o), view(o, shape).
Tensor view_of(const Tensor& self, const nb::args& sizes,
               const std::optional<Arg<WindowOffset>>& offset) {
  const bool is_pair = sizes.size() == 2 && PyIndex_Check(nb::handle(sizes[1]).ptr()) == 0;
  if (is_pair && !offset) {
    const auto start = named_argument<WindowOffset>(sizes[0], "sizes");
    return window(self, start, named_argument<Shape>(sizes[1], "sizes"));
  }
  const Shape shape = shape_of(sizes);
  return offset ? window(self, **offset, shape) : view(self, shape);
}

}  // namespace

void bind_tensor(Module& m) {
  Class<Tensor>(m, "Tensor", nb::type_slots(buffer_slots()), nb::is_weak_referenceable(),
                "An n-dimensional array of one dtype on one device. Views share memory; "
                "`clone` copies. Made by `cuop.tensor`, `cuop.zeros`, ...")
      .def_prop_ro(
          "shape", [](const Tensor& t) { return to_tuple(t.shape()); }, "Sizes of the axes.")
      .def_prop_ro("size", &Tensor::size, "Number of elements.")
      .def_prop_ro(
          "dtype", [](const Tensor& t) { return PyDType{t.dtype()}; }, "Element type.")
      .def_prop_ro("ndim", &Tensor::ndim, "Number of axes.")
      .def_prop_ro(
          "strides", [](const Tensor& t) { return to_tuple(t.strides()); },
          "Elements (not bytes) between neighbours along each axis.")
      .def_prop_ro(
          "device", [](const Tensor& t) { return PyDevice{t.device()}; }, "Where the elements are.")
      .def_prop_ro("nbytes", &Tensor::nbytes, "size * dtype.itemsize.")
      .def_prop_ro(
          "T", [](const Tensor& t) { return transpose(t); }, "View with the axes reversed.")
      .def("is_contiguous", &Tensor::is_contiguous, "True when row-major without gaps.")
      .def(
          "data_ptr", [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.data()); },
          "Address of the first element.")
      .def(
          "fill",
          [](const Tensor& t, Arg<Scalar> v) {
            fill(t, v);
            return t;
          },
          "value"_a, ReturnsSelf(), Released(),
          "Sets every element; returns the tensor. Raises OverflowError when the dtype cannot hold "
          "the value.")
      .def(
          "zero",
          [](const Tensor& t) {
            fill(t, 0);
            return t;
          },
          ReturnsSelf(), Released(), "Sets every element to 0; returns the tensor.")
      .def(
          "copy_from",
          [](const Tensor& t, nb::handle a) {
            copy_from(t, a);
            return t;
          },
          "array"_a, ReturnsSelf(),
          "Copies an array of the same shape, converting its dtype as `to` does; lists take this "
          "dtype. Raises ShapeError, OverflowError.")
      .def("to_numpy", &to_numpy, "The elements as a new NumPy array.")
      .def("numpy", &to_numpy, "The elements as a new NumPy array.")
      .def(
          "tolist", [](const Tensor& t) { return lists_of(to_numpy(for_numpy(t))); },
          "The elements as nested Python lists.")
      .def(
          "to", &to, "args"_a, "dtype"_a = nb::none(), "device"_a = nb::none(),
          "The tensor with another dtype or on another device; itself when nothing changes. Values "
          "that an integer dtype cannot hold keep their low bits, as in C; NaN and what is beyond "
          "64 bits become 0, or -2**63 (2**63) in int64 (uint64). Raises DTypeError from complex "
          "to real.")
      .def(
          "clone", [](const Tensor& t) { return clone(t); }, Released(), "A row-major copy.")
      .def(
          "contiguous", [](const Tensor& t) { return contiguous(t); }, Released(),
          "The tensor when it is row-major without gaps, else a copy that is.")
      .def(
          "item", [](const Tensor& t) { return only_element(t, "item"); },
          "The only element as a Python number. Raises ShapeError.")
      .def(
          "reshape",
          [](const Tensor& t, const nb::args& sizes) { return reshape(t, shape_of(sizes)); },
          "sizes"_a,
          "Row-major order under a new shape; a view when strides allow it. One size may be -1.")
      .def("view", &view_of, "sizes"_a, "offset"_a = nb::none(),
           "As reshape, but never copies. With an offset o, view(shape, offset=o) or view(o, "
           "shape), "
           "the window of that shape that begins there: at one index of each axis, or o elements "
           "into the tensor (row-major). Raises ShapeError.")
      .def("__bool__",
           [](const Tensor& t) {
             return nb::cast<bool>(
                 nb::module_::import_("builtins").attr("bool")(only_element(t, "bool")));
           })
      .def("__int__",
           [](const Tensor& t) { return nb::steal(PyNumber_Long(real_item(t, "int").ptr())); })
      .def("__float__",
           [](const Tensor& t) { return nb::steal(PyNumber_Float(real_item(t, "float").ptr())); })
      .def("__complex__",
           [](const Tensor& t) {
             return nb::module_::import_("builtins").attr("complex")(only_element(t, "complex"));
           })
      .def("__index__",
           [](const Tensor& t) {
             if (!is_integer(t.dtype()))
               throw DTypeError(cat("index: a ", t.dtype(), " tensor is no integer"));
             return only_element(t, "index");
           })
      .def("__repr__", &representation)
      .def("__format__", &formatted<Tensor>, "format_spec"_a, nb::sig(kFormatStub))
      .def("__contains__", &contains<Tensor>, "value"_a.none(), nb::sig(kContainsStub))
      .def("__reduce__", &reduce, nb::sig("def __reduce__(self) -> tuple[Any, ...]"))
      .def(
          "__copy__", [](const Tensor& t) { return clone(t); }, Released())
      .def(
          "__deepcopy__", [](const Tensor& t, nb::handle) { return clone(t); }, "memo"_a.none())
      .def("__array__", &array_of, "dtype"_a = nb::none(), "copy"_a = nb::none())
      .def("__dlpack__", &dlpack_of, nb::kw_only(), "stream"_a = nb::none(),
           "max_version"_a = nb::none(), "dl_device"_a = nb::none(), "copy"_a = nb::none())
      .def("__dlpack_device__", [](const Tensor& t) { return dlpack_device(t.device()); })
      .def_prop_ro("__cuda_array_interface__", &export_cuda_array,
                   "The tensor's GPU memory for other libraries, without a copy (version 3).");
  m.def("_tensor_of_bytes", &tensor_of_bytes, "elements"_a, "shape"_a, "dtype"_a, "device"_a,
        "The tensor that was pickled.");
}

}  // namespace cuop::python
