#include "binders.h"
#include "cuop/ops/softmax/softmax.h"

namespace cuop::python {

namespace {

using SoftmaxFunction = Tensor (*)(const Tensor&, int64_t, const Tensor*);

void define_softmax(Module& m, const char* name, SoftmaxFunction function, const char* doc) {
  m.def(
      name,
      [function](Arg<Tensor> x, int64_t axis, std::optional<Tensor> out) {
        return function(x, axis, pointer(out));
      },
      "x"_a, "axis"_a = -1, nb::kw_only(), "out"_a = nb::none(), ReturnsOut(), Released(), doc);
}

}  // namespace

void bind_softmax(Module& m) {
  define_softmax(
      m, "softmax", softmax,
      R"(exp(x - max) / sum(exp(x - max)) along `axis`; shape and dtype of x, which must be floating.

float16 and bfloat16 are computed in float32. A row that holds NaN or +inf, or only -inf, is NaN
throughout. `out` may be x. Raises ShapeError for a wrong axis or out, DTypeError for other dtypes.)");
  define_softmax(
      m, "log_softmax", log_softmax,
      "log(softmax(x)) along `axis`, accurate where softmax underflows; rules and errors "
      "as for softmax.");
}

}  // namespace cuop::python
