#include "binders.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"

namespace cuop::python {

void bind_view(nb::module_& m) {
  m.def(
      "reshape", [](Arg<Tensor> x, Arg<Shape> shape) { return reshape(x, shape); }, "x"_a,
      "shape"_a, "Row-major order under a new shape; a view when strides allow it.");
  m.def(
      "flatten",
      [](Arg<Tensor> x, int64_t start, int64_t end, std::optional<Tensor> out) {
        const Tensor flat = flatten(*x, start, end);
        if (!out) return flat;
        copy_into(prepare_output("flatten", &*out, flat.shape(), flat.dtype(), flat.device()),
                  flat);
        return *out;
      },
      "x"_a, "start_dim"_a = 0, "end_dim"_a = -1, nb::kw_only(), "out"_a = nb::none(), Released(),
      "The axes from start_dim to end_dim merged into one; a view when strides allow it. With "
      "`out` "
      "a copy there, which may be x's own memory.");
  m.def(
      "permute_dims", [](Arg<Tensor> x, Arg<Axes> axes) { return permute(*x, axes->values); },
      "x"_a, "axes"_a, "View with the axes in another order.");
  m.def(
      "transpose",
      [](Arg<Tensor> x, std::optional<Arg<Axes>> axes) {
        return axes ? permute(*x, (*axes)->values) : transpose(*x);
      },
      "x"_a, "axes"_a = nb::none(), "View with the axes reversed, or in the given order.");
  m.def(
      "swapaxes", [](Arg<Tensor> x, int64_t a, int64_t b) { return swap_axes(x, a, b); }, "x"_a,
      "axis1"_a, "axis2"_a, "View with two axes exchanged.");
  m.def(
      "moveaxis", [](Arg<Tensor> x, int64_t s, int64_t d) { return move_axis(x, s, d); }, "x"_a,
      "source"_a, "destination"_a, "View with one axis moved to another place.");
  m.def(
      "broadcast_to", [](Arg<Tensor> x, Arg<Shape> s) { return broadcast_to(*x, *s); }, "x"_a,
      "shape"_a, "Read-only-by-convention view stretched to `shape` (stride 0).");
  m.def(
      "squeeze", [](Arg<Tensor> x, Arg<Axes> axis) { return squeeze(x, axis->values); }, "x"_a,
      "axis"_a = nb::none(), "View without axes of size 1.");
  m.def(
      "expand_dims", [](Arg<Tensor> x, int64_t axis) { return unsqueeze(x, axis); }, "x"_a,
      "axis"_a, "View with a new axis of size 1.");
}

}  // namespace cuop::python
