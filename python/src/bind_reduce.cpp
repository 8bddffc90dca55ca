#include "binders.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/reduce/reduce.h"

namespace cuop::python {

namespace {

using Out = std::optional<Tensor>;
using OptionalAxes = std::optional<Arg<Axes>>;

/// Calls reduce(x, axes); an empty tuple means no axis, as in NumPy: each element alone.
template <class Reduce>
Tensor over_axes(const Tensor& x, const OptionalAxes& axis, Reduce&& reduce) {
  if (axis && (*axis)->values.empty()) {
    const int64_t added = x.ndim();
    if (added == kMaxDims) {
      throw ShapeError(cat(Call::place("axis"), ": over no axis x may have at most ", kMaxDims - 1,
                           " dimensions, it has ", kMaxDims));
    }
    return reduce(unsqueeze(x, added), std::vector<int64_t>{added}, false);
  }
  return reduce(x, axis ? (*axis)->values : std::vector<int64_t>{}, true);
}

/// Binds f, whose last argument is `out`, as the function cuop.`name` and as the method of Tensor.
template <class F, class... Extra>
void define(Module& m, const char* name, F f, const char* doc, const Extra&... extra) {
  m.def(name, f, "x"_a, extra..., ReturnsOut(), Released(), doc);
  nb::borrow<Class<Tensor>>(m.attr("Tensor")).def(name, f, extra..., ReturnsOut(), Released(), doc);
}

using SumFunction = Tensor (*)(const Tensor&, cuop::Axes, bool, SumMode, const Tensor*);
void define_sum(Module& m, const char* name, SumFunction function, const char* doc) {
  define(
      m, name,
      [function](Arg<Tensor> x, OptionalAxes axis, bool keepdims, std::string_view mode, Out out) {
        return over_axes(x, axis, [&](const Tensor& t, cuop::Axes axes, bool keeps) {
          return function(t, axes, keepdims && keeps, parse_sum_mode(mode), pointer(out));
        });
      },
      doc, "axis"_a = nb::none(), "keepdims"_a = false, nb::kw_only(), "mode"_a = "plain",
      "out"_a = nb::none());
}

using PlainFunction = Tensor (*)(const Tensor&, cuop::Axes, bool, const Tensor*);
void define_plain(Module& m, const char* name, PlainFunction function, const char* doc) {
  define(
      m, name,
      [function](Arg<Tensor> x, OptionalAxes axis, bool keepdims, Out out) {
        return over_axes(x, axis, [&](const Tensor& t, cuop::Axes axes, bool keeps) {
          return function(t, axes, keepdims && keeps, pointer(out));
        });
      },
      doc, "axis"_a = nb::none(), "keepdims"_a = false, nb::kw_only(), "out"_a = nb::none());
}

using SpreadFunction = Tensor (*)(const Tensor&, cuop::Axes, double, bool, const Tensor*);
void define_spread(Module& m, const char* name, SpreadFunction function, const char* doc) {
  define(
      m, name,
      [function](Arg<Tensor> x, OptionalAxes axis, bool keepdims, double correction,
                 std::optional<double> ddof, Out out) {
        return over_axes(x, axis, [&](const Tensor& t, cuop::Axes axes, bool keeps) {
          return function(t, axes, ddof.value_or(correction), keepdims && keeps, pointer(out));
        });
      },
      doc, "axis"_a = nb::none(), "keepdims"_a = false, nb::kw_only(), "correction"_a = 0.0,
      "ddof"_a = nb::none(), "out"_a = nb::none());
}

using ArgFunction = Tensor (*)(const Tensor&, std::optional<int64_t>, bool, const Tensor*);
void define_arg(Module& m, const char* name, ArgFunction function, const char* doc) {
  define(
      m, name,
      [function](Arg<Tensor> x, std::optional<int64_t> axis, bool keepdims, Out out) {
        return function(x, axis, keepdims, pointer(out));
      },
      doc, "axis"_a = nb::none(), "keepdims"_a = false, nb::kw_only(), "out"_a = nb::none());
}

constexpr const char* kSumDoc =
    R"(Sum over `axis` (an int, a tuple, or None for all axes).

mode="plain" adds pairwise; "compensated" (Kahan-Babuska-Neumaier in double precision) errs by one
rounding whatever the number of elements; "exact" is the true sum rounded once: the same bits for any
order, split or number of threads and ranks, equal to math.fsum. Bool and signed integers give int64,
unsigned ones uint64, modulo 2^64 but for mode="exact", which raises OverflowError for a sum that does
not fit (on a GPU it waits for that, where 64 bits may not be enough). float16 and bfloat16 add up in
float32. Sums begin at 0: those of negative zeros are 0. Raises ShapeError for a wrong axis or out,
DTypeError for an out of the wrong dtype, ExecutionError for an unknown mode.)";

}  // namespace

void bind_reduce(Module& m) {
  define_sum(m, "sum", sum, kSumDoc);
  define_sum(m, "mean", mean,
             "Arithmetic mean over `axis`, with the modes of `sum`; integers give float64. With "
             "mode=\"exact\" the quotient of the true sum is rounded once. NaN over no element.");
  define_plain(m, "prod", prod, "Product over `axis`; result dtype as for `sum`.");
  define_plain(m, "max", max,
               "Largest element over `axis`; NaN where there is one. ShapeError over no element, "
               "DTypeError for complex.");
  define_plain(m, "min", min,
               "Smallest element over `axis`; NaN where there is one. ShapeError over no element, "
               "DTypeError for complex.");
  define_plain(m, "any", any, "Whether any element over `axis` is nonzero (NaN is).");
  define_plain(m, "all", all, "Whether every element over `axis` is nonzero (NaN is).");
  define_spread(m, "var", var,
                "Variance over `axis` with divisor n - correction (`ddof` is another name for it): "
                "0 for a population, 1 for an unbiased estimate. Complex gives its real dtype.");
  define_spread(m, "std", stddev, "Square root of `var`.");
  define_arg(
      m, "argmax", argmax,
      "int64 position of the first largest element along `axis`, or in the flattened tensor; "
      "the first NaN wins. ShapeError over no element, DTypeError for complex.");
  define_arg(m, "argmin", argmin,
             "int64 position of the first smallest element along `axis`, or in the flattened "
             "tensor; the first NaN wins. ShapeError over no element, DTypeError for complex.");
  define(
      m, "norm",
      [](Arg<Tensor> x, double ord, OptionalAxes axis, bool keepdims, Out out) {
        return over_axes(x, axis, [&](const Tensor& t, cuop::Axes axes, bool keeps) {
          return norm(t, ord, axes, keepdims && keeps, pointer(out));
        });
      },
      "Vector norm (sum |x|^ord)^(1/ord) of the elements over `axis`: 2 Euclid, 1, inf largest and "
      "-inf smallest magnitude, 0 the count of nonzeros, any other real number. Integers give "
      "float64, complex its real dtype.",
      "ord"_a = 2.0, "axis"_a = nb::none(), "keepdims"_a = false, nb::kw_only(),
      "out"_a = nb::none());
  define(
      m, "cumsum",
      [](Arg<Tensor> x, int64_t axis, Out out) { return cumsum(x, axis, pointer(out)); },
      "Running sum along `axis`; result dtype as for `sum`.", "axis"_a = -1, nb::kw_only(),
      "out"_a = nb::none());
}

}  // namespace cuop::python
