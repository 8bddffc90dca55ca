#include "binders.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/output.h"
#include "cuop/ops/reduce/cumulative_sum.h"
#include "cuop/ops/reduce/difference.h"
#include "cuop/ops/reduce/reduce.h"
#include "cuop/ops/reduce/reduction.h"
#include "define_both.h"

namespace cuop::python {

namespace {

using Out = std::optional<Tensor>;
using OptionalAxes = std::optional<Arg<Axes>>;
using OptionalDType = std::optional<Arg<DType>>;
using Initial = std::optional<Arg<Scalar>>;

/// None is all axes; an empty tuple means no axis, as in NumPy: each element alone.
cuop::Axes axes_of(const Tensor& x, const OptionalAxes& axis) {
  if (!axis) return {};
  const cuop::Axes axes = cuop::Axes::exactly((*axis)->values);
  if (axes.are_none()) check_takes_axis(Call::place("axis").c_str(), x.ndim());
  return axes;
}

/// The same for f whose last argument is `out`.
template <class F, class... Extra>
void define(Module& m, const char* name, F f, const char* doc, const Extra&... extra) {
  define_both(m, name, f, extra..., ReturnsOut(), Released(), doc);
}

/// What a reduction takes of NumPy's beside the axes, and `fold`, which brings `initial` in.
struct Wanted {
  const char* name;
  const Tensor* out = nullptr;
  std::optional<DType> dtype = {};
  std::optional<Scalar> initial = {};
  Tensor (*fold)(const Operand&, const Operand&, const Tensor*) = nullptr;
};

/// Calls reduce(x, axes, out); with a dtype x is converted to it, and so is the result.
template <class Reduce>
Tensor reduced(const Tensor& x, const OptionalAxes& axis, const Wanted& wanted, Reduce&& reduce) {
  const cuop::Axes axes = axes_of(x, axis);
  const auto& [name, out, dtype, initial, fold] = wanted;
  if (!dtype && !initial) return reduce(x, axes, out);
  const Tensor* none = nullptr;
  Tensor result = reduce(dtype ? cast(x, *dtype) : x, axes, none);
  if (initial) {
    const std::string who = cat(name, ": initial");
    const Tensor first = scalar_tensor(who.c_str(), *initial, result.dtype(), result.device());
    result = fold(result, first, nullptr);
  }
  if (dtype) result = cast(result, *dtype);
  if (out == nullptr) return result;
  const Tensor target = prepare_output(name, out, result.shape(), result.dtype(), result.device());
  copy_into(target, result);
  return target;
}

void define_sum(Module& m, const char* doc) {
  define(
      m, "sum",
      [](Arg<Tensor> x, OptionalAxes axis, bool keepdims, std::string_view mode,
         OptionalDType dtype, Initial initial, Out out) {
        const Wanted wanted{"sum", pointer(out), converted(dtype), converted(initial), &add};
        return reduced(x, axis, wanted, [&](const Tensor& t, auto axes, auto* to) {
          return sum(t, axes, keepdims, parse_sum_mode(mode), to);
        });
      },
      doc, "axis"_a = nb::none(), "keepdims"_a = false, nb::kw_only(), "mode"_a = "plain",
      "dtype"_a = nb::none(), "initial"_a = nb::none(), "out"_a = nb::none());
}

void define_mean(Module& m, const char* doc) {
  define(
      m, "mean",
      [](Arg<Tensor> x, OptionalAxes axis, bool keepdims, std::string_view mode,
         OptionalDType dtype, Out out) {
        const Wanted wanted{"mean", pointer(out), converted(dtype)};
        return reduced(x, axis, wanted, [&](const Tensor& t, auto axes, auto* to) {
          return mean(t, axes, keepdims, parse_sum_mode(mode), to);
        });
      },
      doc, "axis"_a = nb::none(), "keepdims"_a = false, nb::kw_only(), "mode"_a = "plain",
      "dtype"_a = nb::none(), "out"_a = nb::none());
}

void define_prod(Module& m, const char* doc) {
  define(
      m, "prod",
      [](Arg<Tensor> x, OptionalAxes axis, bool keepdims, OptionalDType dtype, Initial initial,
         Out out) {
        const Wanted wanted{"prod", pointer(out), converted(dtype), converted(initial), &multiply};
        return reduced(x, axis, wanted, [&](const Tensor& t, auto axes, auto* to) {
          return prod(t, axes, keepdims, to);
        });
      },
      doc, "axis"_a = nb::none(), "keepdims"_a = false, nb::kw_only(), "dtype"_a = nb::none(),
      "initial"_a = nb::none(), "out"_a = nb::none());
}

using PlainFunction = Tensor (*)(const Tensor&, cuop::Axes, bool, const Tensor*);
void define_extreme(Module& m, Wanted fixed, PlainFunction function, const char* doc) {
  define(
      m, fixed.name,
      [fixed, function](Arg<Tensor> x, OptionalAxes axis, bool keepdims, Initial initial, Out out) {
        Wanted wanted = fixed;
        wanted.out = pointer(out);
        wanted.initial = converted(initial);
        return reduced(x, axis, wanted, [&](const Tensor& t, auto axes, auto* to) {
          if (!initial || t.size() > 0) return function(t, axes, keepdims, to);
          return named_call(cat(fixed.name, ": initial"), [&] {  // the largest of nothing else
            return full(any(t, axes, keepdims).shape(), **initial, t.dtype(), t.device());
          });
        });
      },
      doc, "axis"_a = nb::none(), "keepdims"_a = false, nb::kw_only(), "initial"_a = nb::none(),
      "out"_a = nb::none());
}

void define_plain(Module& m, const char* name, PlainFunction function, const char* doc) {
  define(
      m, name,
      [name, function](Arg<Tensor> x, OptionalAxes axis, bool keepdims, Out out) {
        const Wanted wanted{name, pointer(out)};
        return reduced(x, axis, wanted, [&](const Tensor& t, auto axes, auto* to) {
          return function(t, axes, keepdims, to);
        });
      },
      doc, "axis"_a = nb::none(), "keepdims"_a = false, nb::kw_only(), "out"_a = nb::none());
}

using SpreadFunction = Tensor (*)(const Tensor&, cuop::Axes, double, bool, const Tensor*);
void define_spread(Module& m, const char* name, SpreadFunction function, const char* doc) {
  define(
      m, name,
      [name, function](Arg<Tensor> x, OptionalAxes axis, bool keepdims, double correction,
                       std::optional<double> ddof, OptionalDType dtype, Out out) {
        const Wanted wanted{name, pointer(out), converted(dtype)};
        return reduced(x, axis, wanted, [&](const Tensor& t, auto axes, auto* to) {
          return function(t, axes, ddof.value_or(correction), keepdims, to);
        });
      },
      doc, "axis"_a = nb::none(), "keepdims"_a = false, nb::kw_only(), "correction"_a = 0.0,
      "ddof"_a = nb::none(), "dtype"_a = nb::none(), "out"_a = nb::none());
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
float32. With `dtype` x is converted to it first, and the result has it. Sums begin at 0: those of
negative zeros are 0; `initial` is added at the end. Raises ShapeError for a wrong axis or out,
DTypeError for an out of the wrong dtype, OverflowError for an initial that the dtype cannot hold,
ExecutionError for an unknown mode.)";

}  // namespace

void bind_reduce(Module& m) {
  define_sum(m, kSumDoc);
  define_mean(m,
              "Arithmetic mean over `axis`, with the modes and the `dtype` of `sum`; integers give "
              "float64. With mode=\"exact\" the quotient of the true sum is rounded once. NaN over "
              "no element.");
  define_prod(m,
              "Product over `axis`, times `initial`; result dtype, `dtype` and errors as for "
              "`sum`.");
  define_extreme(m, {.name = "max", .fold = &maximum}, max,
                 "Largest of the elements over `axis` and `initial`; NaN where there is one. "
                 "ShapeError over no element without `initial`, OverflowError for one that the "
                 "dtype cannot hold, DTypeError for complex.");
  define_extreme(m, {.name = "min", .fold = &minimum}, min,
                 "Smallest of the elements over `axis` and `initial`; NaN where there is one. "
                 "Errors as for `max`.");
  define_plain(m, "any", any, "Whether any element over `axis` is nonzero (NaN is).");
  define_plain(m, "all", all, "Whether every element over `axis` is nonzero (NaN is).");
  define_spread(m, "var", var,
                "Variance over `axis` with divisor n - correction (`ddof` is another name for it): "
                "0 for a population, 1 for an unbiased estimate. Complex gives its real dtype. "
                "`dtype` as for `sum`.");
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
        return norm(x, ord, axes_of(x, axis), keepdims, pointer(out));
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
  m.def(
      "cumulative_sum",
      [](Arg<Tensor> x, std::optional<int64_t> axis, OptionalDType dtype, bool include_initial) {
        return cumulative_sum(x, axis, {converted(dtype), include_initial});
      },
      "x"_a, nb::kw_only(), "axis"_a = nb::none(), "dtype"_a = nb::none(),
      "include_initial"_a = false, Released(),
      "Running sum along `axis`, which only a tensor of 1 dimension may leave out; result dtype "
      "as for `sum`, whose `dtype` it has. With include_initial it begins with 0 and is longer "
      "by 1. Raises ShapeError.");
  m.def(
      "diff", [](Arg<Tensor> x, int64_t n, int64_t axis) { return diff(x, n, axis); }, "x"_a,
      "n"_a = 1, "axis"_a = -1, Released(),
      "Differences of neighbours along `axis`, n times: x[1:] - x[:-1]; of bool whether they "
      "differ. Raises ShapeError, ExecutionError for a negative n.");
}

}  // namespace cuop::python
