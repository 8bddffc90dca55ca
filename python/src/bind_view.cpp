#include "binders.h"
#include "cuop/operators/windows.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"
#include "define_both.h"

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
  define_both(
      m, "flatten",
      [](Arg<Tensor> x, int64_t start, int64_t end, Out out) {
        return placed("flatten", flatten(*x, start, end), out);
      },
      "start_dim"_a = 0, "end_dim"_a = -1, nb::kw_only(), "out"_a = nb::none(), ReturnsOut(),
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
  define_both(
      m, "copy", [](Arg<Tensor> x, Out out) { return copy(x, pointer(out)); }, nb::kw_only(),
      "out"_a = nb::none(), ReturnsOut(), Released(),
      "The elements of x in a new row-major tensor, or in `out`, which has x's shape and dtype.");
  m.def(
      "permute_dims",
      [](Arg<Tensor> x, Arg<Axes> axes) {
        return named_call("permute_dims", [&] { return permute(*x, axes->values); });
      },
      "x"_a, "axes"_a, "View with the axes in another order.");
  m.def(
      "transpose",
      [](Arg<Tensor> x, std::optional<Arg<Axes>> axes, Out out) {
        return named_call("transpose", [&] {
          return placed("transpose", axes ? permute(*x, (*axes)->values) : transpose(*x), out);
        });
      },
      "x"_a, "axes"_a = nb::none(), nb::kw_only(), "out"_a = nb::none(), ReturnsOut(), Released(),
      "View with the axes reversed, or in the given order. With `out` a copy there.");
  define_both(
      m, "swapaxes", [](Arg<Tensor> x, int64_t a, int64_t b) { return swap_axes(x, a, b); },
      "axis1"_a, "axis2"_a, "View with two axes exchanged.");
  define_both(
      m, "moveaxis",
      [](Arg<Tensor> x, Arg<Axes> source, Arg<Axes> destination) {
        return move_axes(x, source->values, destination->values);
      },
      "source"_a, "destination"_a,
      "View with one axis, or several, moved to other places. Raises ShapeError.");
  define_both(
      m, "broadcast_to",
      [](Arg<Tensor> x, Arg<Shape> s) {
        return named_call("broadcast_to: shape", [&] { return broadcast_to(*x, *s); });
      },
      "shape"_a, "Read-only-by-convention view stretched to `shape` (stride 0).");
  define_both(
      m, "squeeze",
      [](Arg<Tensor> x, std::optional<Arg<Axes>> axis) {
        return axis ? squeeze(x, (*axis)->values) : squeeze(x);
      },
      "axis"_a = nb::none(),
      "View without the given axes, which have size 1, or (None) without all such axes.");
  define_both(
      m, "expand_dims", [](Arg<Tensor> x, Arg<Axes> axis) { return unsqueeze(x, axis->values); },
      "axis"_a, "View with new axes of size 1, which are at these places of the result.");
  define_both(
      m, "ravel", [](Arg<Tensor> x) { return flatten(*x); }, Released(),
      "All axes merged into one; a view when strides allow it.");
  m.def(
      "unstack", [](Arg<Tensor> x, int64_t axis) { return nb::tuple(nb::cast(unstack(x, axis))); },
      "x"_a, nb::kw_only(), "axis"_a = 0,
      nb::sig("def unstack(x: ArrayLike, *, axis: int = 0) -> tuple[Tensor, ...]"),
      "The views at each position of an axis. Raises ShapeError.");
  m.def(
      "broadcast_arrays",
      [](const nb::args& arrays) {
        std::vector<Tensor> tensors;
        for (nb::handle each : arrays) tensors.push_back(named_argument<Tensor>(each, "arrays"));
        return broadcast_arrays(tensors);
      },
      "arrays"_a, nb::sig("def broadcast_arrays(*arrays: ArrayLike) -> list[Tensor]"),
      "All arrays as views of the shape that they broadcast to. Raises ShapeError.");
}

}  // namespace cuop::python
