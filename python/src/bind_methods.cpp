// Methods and properties of Tensor that have another form than the functions of the same name, and
// those of PyTorch's that have no function.
#include "binders.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/indexing.h"
#include "cuop/ops/index/view.h"
#include "exchange.h"

namespace cuop::python {

namespace {

using Get = Tensor (*)(const Tensor&);

auto permuted(const char* name) {
  return [name](const Tensor& self, const nb::args& axes) {
    if (axes.size() == 0 || (axes.size() == 1 && nb::handle(axes[0]).is_none())) {
      return transpose(self);
    }
    const nb::handle order = axes.size() == 1 ? nb::handle(axes[0]) : nb::handle(axes);
    const auto checked = named_argument<Axes>(order, "axes");
    return named_call(name, [&] { return permute(self, checked.values); });
  };
}

/// -1 keeps the size of an axis that the tensor has.
Tensor expanded(const Tensor& self, const nb::args& sizes) {
  Shape shape = shape_of(sizes);
  const int added = shape.ndim() - self.ndim();
  for (int i = std::max(added, 0); i < shape.ndim(); ++i) {
    if (shape[i] == -1) shape[i] = self.shape(i - added);
  }
  return named_call("expand: sizes", [&] { return broadcast_to(self, shape); });
}

Tensor imaginary(const Tensor& self) {
  return is_complex(self.dtype()) ? imaginary_part(self) : imag(self);
}

/// tensor.real = value and the like.
auto part_setter(const char* name, Get part) {
  return [name, part](const Tensor& self, nb::handle value) {
    const Tensor target = part(self);
    const Tensor source = named_values(value, target.dtype(), name);
    const Index everything[] = {EllipsisIndex{}};
    const nb::gil_scoped_release released;
    named_call(name, [&] { set_item(target, everything, source); });
  };
}

nb::bytes bytes_of(const Tensor& self) {
  const Tensor host = without_gil([&] { return contiguous(to_device(self, kCpu)); });
  return nb::bytes(host.data(), static_cast<size_t>(host.nbytes()));
}

void bind_forms(Class<Tensor> type) {
  type.def("transpose", permuted("transpose"), "axes"_a,
           nb::sig("def transpose(self, *axes: AxesLike | None) -> Tensor"),
           "View with the axes reversed, or in the given order: transpose(1, 0) or "
           "transpose((1, 0)). Raises ShapeError.")
      .def("permute", permuted("permute"), "axes"_a,
           nb::sig("def permute(self, *axes: AxesLike | None) -> Tensor"), "As `transpose`.")
      .def("expand", &expanded, "sizes"_a, nb::sig("def expand(self, *sizes: ShapeLike) -> Tensor"),
           "Read-only-by-convention view stretched to the sizes (stride 0); -1 keeps an axis. "
           "Raises ShapeError.")
      .def(
          "unsqueeze", [](const Tensor& t, int64_t axis) { return unsqueeze(t, axis); }, "dim"_a,
          "View with a new axis of size 1. Raises ShapeError.")
      .def(
          "__round__",
          [](const Tensor& t, std::optional<int64_t> digits) {
            return nb::cast(t).attr("round")(digits.value_or(0));
          },
          "ndigits"_a = nb::none(),
          nb::sig("def __round__(self, ndigits: int | None = None) -> "
                  "Tensor"));
}

void bind_places(Class<Tensor> type) {
  type.def(
          "to_device", [](const Tensor& t, Arg<Device> device) { return to_device(t, device); },
          "device"_a, Released(), "The tensor on another device; itself when it is there.")
      .def(
          "cpu", [](const Tensor& t) { return to_device(t, kCpu); }, Released(),
          "The tensor in the host's memory; itself when it is there.")
      .def(
          "cuda", [](const Tensor& t, Arg<Device> device) { return to_device(t, device); },
          "device"_a = "cuda", Released(),
          "The tensor on a GPU; itself when it is there. Raises DeviceError.")
      .def("tobytes", &bytes_of, "The elements in row-major order as bytes.")
      .def("numel", &Tensor::size, "Number of elements, as `size`.")
      .def("dim", &Tensor::ndim, "Number of axes, as `ndim`.");
}

}  // namespace

void bind_methods(Module& m) {
  auto type = nb::borrow<Class<Tensor>>(m.attr("Tensor"));
  bind_forms(type);
  bind_places(type);
  type.def_prop_rw(
          "real", &real_part, part_setter("real", &real_part),
          "The real parts, in the tensor's memory; of real numbers the tensor itself. What "
          "is assigned broadcasts.")
      .def_prop_rw("imag", &imaginary, part_setter("imag", &imaginary_part),
                   "The imaginary parts, in the tensor's memory; new zeros for real numbers, which "
                   "cannot be assigned to (DTypeError).")
      .def_prop_ro("mT", &matrix_transpose,
                   "View with the last two axes exchanged. Raises ShapeError below 2 dimensions.")
      .def_prop_ro(
          "itemsize", [](const Tensor& t) { return itemsize(t.dtype()); }, "Bytes of one element.");
  m.def(
      "matrix_transpose", [](Arg<Tensor> x) { return matrix_transpose(x); }, "x"_a,
      "View with the last two axes exchanged. Raises ShapeError below 2 dimensions.");
}

}  // namespace cuop::python
