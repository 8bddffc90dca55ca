#include "binders.h"
#include "cuop/operators/windows.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"

namespace cuop::python {

namespace {

using Out = std::optional<Tensor>;

/// A view as it is or, when there is an `out`, its elements there.
Tensor placed(const char* who, const Tensor& view, const Out& out) {
  if (!out) return view;
  copy_into(prepare_output(who, &*out, view.shape(), view.dtype(), view.device()), view);
  return *out;
}

}  // namespace

void bind_view(Module& m) {
  m.def(
      "reshape", [](Arg<Tensor> x, Arg<Shape> shape) { return reshape(x, shape); }, "x"_a,
      "shape"_a, "Row-major order under a new shape; a view when strides allow it.");
  m.def(
      "flatten",
      [](Arg<Tensor> x, int64_t start, int64_t end, Out out) {
        return placed("flatten", flatten(*x, start, end), out);
      },
      "x"_a, "start_dim"_a = 0, "end_dim"_a = -1, nb::kw_only(), "out"_a = nb::none(), ReturnsOut(),
      Released(),
      "The axes from start_dim to end_dim merged into one; a view when strides allow it. With "
      "`out` a copy there, which may be x's own memory.");
  m.def(
      "view",
      [](Arg<Tensor> x, Arg<Shape> shape, const std::optional<Arg<WindowOffset>>& offset, Out out) {
        return placed("view", offset ? window(x, **offset, shape) : view(x, shape), out);
      },
      "x"_a, "shape"_a, "offset"_a = nb::none(), nb::kw_only(), "out"_a = nb::none(), ReturnsOut(),
      Released(),
      "x under a new shape, never a copy; with an offset the window of that shape that begins "
      "there: at one index of each axis, or so many elements into x (row-major). With `out` a copy "
      "there. Raises ShapeError.");
  m.def(
      "copy", [](Arg<Tensor> x, Out out) { return copy(x, pointer(out)); }, "x"_a, nb::kw_only(),
      "out"_a = nb::none(), ReturnsOut(), Released(),
      "The elements of x in a new row-major tensor, or in `out`, which has x's shape and dtype.");
  m.def(
      "permute_dims", [](Arg<Tensor> x, Arg<Axes> axes) { return permute(*x, axes->values); },
      "x"_a, "axes"_a, "View with the axes in another order.");
  m.def(
      "transpose",
      [](Arg<Tensor> x, std::optional<Arg<Axes>> axes, Out out) {
        return placed("transpose", axes ? permute(*x, (*axes)->values) : transpose(*x), out);
      },
      "x"_a, "axes"_a = nb::none(), nb::kw_only(), "out"_a = nb::none(), ReturnsOut(), Released(),
      "View with the axes reversed, or in the given order. With `out` a copy there.");
  m.def(
      "swapaxes", [](Arg<Tensor> x, int64_t a, int64_t b) { return swap_axes(x, a, b); }, "x"_a,
      "axis1"_a, "axis2"_a, "View with two axes exchanged.");
  m.def(
      "moveaxis", [](Arg<Tensor> x, int64_t s, int64_t d) { return move_axis(x, s, d); }, "x"_a,
      "source"_a, "destination"_a, "View with one axis moved to another place.");
  m.def(
      "broadcast_to",
      [](Arg<Tensor> x, Arg<Shape> s) {
        return named_call("broadcast_to: shape", [&] { return broadcast_to(*x, *s); });
      },
      "x"_a, "shape"_a, "Read-only-by-convention view stretched to `shape` (stride 0).");
  m.def(
      "squeeze",
      [](Arg<Tensor> x, std::optional<Arg<Axes>> axis) {
        return axis ? squeeze(x, (*axis)->values) : squeeze(x);
      },
      "x"_a, "axis"_a = nb::none(),
      "View without the given axes, which have size 1, or (None) without all such axes.");
  m.def(
      "expand_dims", [](Arg<Tensor> x, int64_t axis) { return unsqueeze(x, axis); }, "x"_a,
      "axis"_a, "View with a new axis of size 1.");
}

}  // namespace cuop::python
