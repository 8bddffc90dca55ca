#include "binders.h"
#include "cuop/core/text.h"
#include "cuop/ops/pool/pool.h"

namespace cuop::python {

namespace {

using Pooling = Tensor (*)(const Tensor&, const PoolOptions&, const Tensor*);
using GlobalPooling = Tensor (*)(const Tensor&, const Tensor*);

PoolOptions options(const Arg<Shape>& kernel, const std::optional<Arg<Shape>>& stride,
                    const Arg<Shape>& padding, bool count_include_pad) {
  return {*kernel, stride ? **stride : Shape{}, *padding, count_include_pad};
}

constexpr const char* kGeometry = R"(

x is [N, C, spatial...]; kernel, stride (None: the kernel) and padding are one number or one for each
spatial axis. The result has (in + 2 * padding - kernel) // stride + 1 elements on each of them.
Integers and floating dtypes. Raises ShapeError (padding may be at most half the kernel) and
DTypeError.)";

void bind_max(Module& m, const char* name, Pooling pooling) {
  const std::string doc = cat(
      "The largest element of each window; NaN when it holds one. Padding never wins.", kGeometry);
  m.def(
      name,
      [pooling](Arg<Tensor> x, Arg<Shape> kernel, std::optional<Arg<Shape>> stride,
                Arg<Shape> padding, std::optional<Tensor> out) {
        return pooling(x, options(kernel, stride, padding, true), pointer(out));
      },
      "x"_a, "kernel"_a, "stride"_a = nb::none(), "padding"_a = 0, nb::kw_only(),
      "out"_a = nb::none(), ReturnsOut(), Released(), doc.c_str());
}

void bind_avg(Module& m, const char* name, Pooling pooling) {
  const std::string doc = cat(
      "The mean of each window, in float64 for integers. Padding counts as zeros, or not at all "
      "with count_include_pad=False.",
      kGeometry);
  m.def(
      name,
      [pooling](Arg<Tensor> x, Arg<Shape> kernel, std::optional<Arg<Shape>> stride,
                Arg<Shape> padding, bool count_include_pad, std::optional<Tensor> out) {
        return pooling(x, options(kernel, stride, padding, count_include_pad), pointer(out));
      },
      "x"_a, "kernel"_a, "stride"_a = nb::none(), "padding"_a = 0, nb::kw_only(),
      "count_include_pad"_a = true, "out"_a = nb::none(), ReturnsOut(), Released(), doc.c_str());
}

void bind_global(Module& m, const char* name, GlobalPooling pooling, const char* doc) {
  m.def(
      name,
      [pooling](Arg<Tensor> x, std::optional<Tensor> out) { return pooling(x, pointer(out)); },
      "x"_a, nb::kw_only(), "out"_a = nb::none(), ReturnsOut(), Released(), doc);
}

}  // namespace

void bind_pool(Module& m) {
  bind_max(m, "max_pool1d", &max_pool1d);
  bind_max(m, "max_pool2d", &max_pool2d);
  bind_max(m, "max_pool3d", &max_pool3d);
  bind_avg(m, "avg_pool1d", &avg_pool1d);
  bind_avg(m, "avg_pool2d", &avg_pool2d);
  bind_avg(m, "avg_pool3d", &avg_pool3d);
  bind_global(m, "global_max_pool", &global_max_pool,
              "The largest element of each channel of x [N, C, spatial...]: [N, C, 1, ...], or "
              "[N, C] when `out` has that shape.");
  bind_global(m, "global_avg_pool", &global_avg_pool,
              "The mean of each channel of x [N, C, spatial...]: [N, C, 1, ...], or [N, C] when "
              "`out` has that shape. Accumulated in double, which integers answer too.");
  bind_global(m, "global_max_pool2d", &global_max_pool2d,
              "global_max_pool of images x [N, C, height, width]: [N, C, 1, 1] or [N, C].");
  bind_global(m, "global_avg_pool2d", &global_avg_pool2d,
              "global_avg_pool of images x [N, C, height, width]: [N, C, 1, 1] or [N, C].");
}

}  // namespace cuop::python
