// Methods of DistTensor: indexing, reductions, transforms, conversions; strict().
#include <array>

#include "binders.h"
#include "cuop/core/text.h"
#include "cuop/dist/algo/fft.h"
#include "cuop/dist/algo/index.h"
#include "cuop/dist/algo/reduce.h"
#include "cuop/dist/algo/reshape.h"
#include "cuop/dist/exec/redistribute.h"
#include "cuop/dist/strict.h"
#include "dist_arguments.h"
#include "exchange.h"
#include "index_arguments.h"
#include "parts_operands.h"
#include "shared_methods.h"

namespace cuop::python {

/// An argument that NumPy's functions pass and that has no meaning here.
struct OnlyNone {};

}  // namespace cuop::python

namespace nanobind::detail {

template <>
struct type_caster<cuop::python::OnlyNone> {
  NB_TYPE_CASTER(cuop::python::OnlyNone, const_name("None"))

  bool from_python(handle source, auto, cleanup_list*) noexcept { return source.is_none(); }
};

}  // namespace nanobind::detail

namespace cuop::python {

namespace {

using dist::DistTensor;

/// A key that is a mask; one number, of any number of ranks, is an integer as elsewhere.
const DistTensor* mask_of(nb::handle key) {
  if (!nb::isinstance<DistTensor>(key)) return nullptr;
  const DistTensor* mask = nb::inst_ptr<DistTensor>(key);
  return mask->ndim() == 0 && mask->dtype() != DType::kBool ? nullptr : mask;
}

DistTensor get_dist_item(const DistTensor& self, nb::handle key) {
  if (const DistTensor* mask = mask_of(key)) {
    const nb::gil_scoped_release released;
    return dist::get_item(self, *mask);
  }
  const std::vector<Index> index = to_indices(key, self.device());
  const nb::gil_scoped_release released;
  return dist::get_item(self, index);
}

void set_dist_item(nb::handle self, nb::handle key, nb::handle value) {
  const std::array<nb::handle, 2> both{self, value};
  const PartsOperands operands(both);
  if (const DistTensor* mask = mask_of(key)) {
    const nb::gil_scoped_release released;
    return dist::set_item(operands.tensor(0), *mask, *operands.list()[1]);
  }
  const std::vector<Index> index = to_indices(key, operands.tensor(0).device());
  const nb::gil_scoped_release released;
  dist::set_item(operands.tensor(0), index, *operands.list()[1]);
}

void bind_indexing(Class<DistTensor> type) {
  type.def(
          "__getitem__", &get_dist_item, "key"_a.none(),
          "Integers, slices, None and ... as of tensors. Rows stay where they are: slices leave "
          "uneven blocks, and an integer of a split dimension leaves the result on the ranks that "
          "have it. Only a negative step through rows of several ranks moves them, and is "
          "collective. A DistTensor of bool, a mask of the first dimensions or of all, picks what "
          "is at them, in row-major order, as one dimension in uneven blocks (collective). Raises "
          "IndexError; ExecutionError for masks and index arrays of one rank, DTypeError for a key "
          "of another kind.")
      .def("__setitem__", &set_dist_item, "key"_a.none(), "value"_a,
           nb::sig("def __setitem__(self, key: object | None, value: DistTensor | Number) -> None"),
           "Assigns in this tensor's parts, and in all that share their memory. The value, a "
           "DistTensor (then it is collective) or a number, broadcasts and takes the dtype; for "
           "the elements of a mask, a DistTensor of bool, it is one element.")
      .def("__contains__", &contains<DistTensor>, "value"_a.none(), nb::sig(kContainsStub),
           "Whether some element on any rank equals the value. Collective.")
      .def("__iter__", &iterate<DistTensor>, "x[0], x[1], ... in parts.")
      .def("__len__", &length_of<DistTensor>);
}

using OptionalDType = std::optional<Arg<DType>>;

using OptionalAxes = std::optional<Arg<Axes>>;

/// The reduction over `axis`; an empty tuple means no axis, as of tensors: each element alone.
DistTensor reduce_over(const OptionalAxes& axis, const DistTensor& x, dist::ReduceOptions options) {
  if (axis) options.axes = ReduceAxes::exactly((*axis)->values);
  return dist::reduce(x, options);
}

/// The same of x converted to a dtype, which the result has, or of x itself.
DistTensor reduce_in(const OptionalDType& dtype, const OptionalAxes& axis, const DistTensor& x,
                     const dist::ReduceOptions& options) {
  return dtype ? dist::cast(reduce_over(axis, dist::cast(x, **dtype), options), **dtype)
               : reduce_over(axis, x, options);
}

void define_reduction(Class<DistTensor>& type, const char* name, ReduceKind kind, const char* doc) {
  type.def(
      name,
      [kind](const DistTensor& x, const OptionalAxes& axis, bool keepdims, OnlyNone) {
        return reduce_over(axis, x, {kind, {}, keepdims});
      },
      "axis"_a = nb::none(), "keepdims"_a = false, nb::kw_only(), "out"_a = nb::none(), Released(),
      doc);
}

void define_product(Class<DistTensor>& type) {
  type.def(
      "prod",
      [](const DistTensor& x, const OptionalAxes& axis, bool keepdims, OptionalDType dtype,
         OnlyNone) {
        return reduce_in(dtype, axis, x, {ReduceKind::kProd, {}, keepdims});
      },
      "axis"_a = nb::none(), "keepdims"_a = false, nb::kw_only(), "dtype"_a = nb::none(),
      "out"_a = nb::none(), Released(), "Product over `axis`; `dtype` as for `sum`. Collective.");
}

void define_sum(Class<DistTensor>& type, const char* name, ReduceKind kind, const char* doc) {
  type.def(
      name,
      [kind](const DistTensor& x, const OptionalAxes& axis, bool keepdims, std::string_view mode,
             OptionalDType dtype, OnlyNone) {
        return reduce_in(dtype, axis, x, {kind, {}, keepdims, parse_sum_mode(mode)});
      },
      "axis"_a = nb::none(), "keepdims"_a = false, nb::kw_only(), "mode"_a = "plain",
      "dtype"_a = nb::none(), "out"_a = nb::none(), Released(), doc);
}

void define_spread(Class<DistTensor>& type, const char* name, ReduceKind kind, const char* doc) {
  type.def(
      name,
      [kind](const DistTensor& x, const OptionalAxes& axis, bool keepdims, double correction,
             std::optional<double> ddof, OptionalDType dtype, OnlyNone) {
        return reduce_in(dtype, axis, x,
                         {kind, {}, keepdims, SumMode::kPlain, ddof.value_or(correction)});
      },
      "axis"_a = nb::none(), "keepdims"_a = false, nb::kw_only(), "correction"_a = 0.0,
      "ddof"_a = nb::none(), "dtype"_a = nb::none(), "out"_a = nb::none(), Released(), doc);
}

void bind_reductions(Class<DistTensor> type) {
  define_sum(
      type, "sum", ReduceKind::kSum,
      "Sum over `axis` (None: all, (): each element alone), split as the dimensions that stay, on "
      "every rank when "
      "none does. mode \"plain\", \"compensated\" or \"exact\" (the same bits on any number of "
      "ranks). With `dtype` x is converted to it first, and the result has it. The result is "
      "always "
      "a new one: `out`, which NumPy's functions pass, is None. Collective.");
  define_sum(type, "mean", ReduceKind::kMean,
             "Arithmetic mean over `axis`, with the modes, the `dtype` and the layout of `sum`. "
             "Collective.");
  define_spread(type, "var", ReduceKind::kVar,
                "Variance over `axis` with divisor n - correction (`ddof` is another name for it), "
                "in the layout of `sum`; moments of the parts are merged in rank order. Integers "
                "give float64, complex its real dtype; `dtype` as for `sum`. Collective.");
  define_spread(type, "std", ReduceKind::kStd, "Square root of `var`. Collective.");
  define_product(type);
  define_reduction(type, "max", ReduceKind::kMax,
                   "Largest element over `axis`; NaN where there is one. ShapeError over no "
                   "element. Collective.");
  define_reduction(type, "min", ReduceKind::kMin,
                   "Smallest element over `axis`; NaN where there is one. ShapeError over no "
                   "element. Collective.");
  define_reduction(type, "any", ReduceKind::kAny,
                   "Whether any element over `axis` is nonzero. Collective.");
  define_reduction(type, "all", ReduceKind::kAll,
                   "Whether every element over `axis` is nonzero. Collective.");
}

void bind_shapes(Class<DistTensor> type) {
  type.def(
      "reshape",
      [](const DistTensor& x, const nb::args& sizes) {
        const Shape shape = shape_of(sizes);
        const nb::gil_scoped_release released;
        return dist::reshape(x, shape);
      },
      nb::sig("def reshape(self, *shape: int | Sequence[int]) -> DistTensor"),
      "Row-major order under a new shape, of which one size may be -1. Where every rank's part is "
      "a "
      "box of the new shape too, as when the split dimension stays or only those behind it change, "
      "nothing moves; else each rank fetches its rows of the result from the ranks that have them, "
      "which is collective, and nobody gathers. Raises ShapeError.");
}

void bind_dist_transforms(Class<DistTensor> type) {
  static constexpr std::pair<const char*, dist::FftKind> kKinds[] = {
      {"fft", dist::FftKind::kFft},
      {"ifft", dist::FftKind::kIfft},
      {"rfft", dist::FftKind::kRfft},
      {"irfft", dist::FftKind::kIrfft}};
  for (const auto& [name, kind] : kKinds) {
    type.def(
        name,
        [name, kind](const DistTensor& x, std::optional<int64_t> n, int64_t axis,
                     const std::optional<std::string>& norm) {
          return dist::fft(x, {kind, n, axis, parse_fft_norm(norm.value_or("backward"), name)});
        },
        "n"_a = nb::none(), "axis"_a = -1, "norm"_a = nb::none(), Released(),
        "1-D transforms along `axis`, which is made whole on each rank, the other dimensions "
        "split. "
        "Collective.");
  }
  for (const bool is_inverse : {false, true}) {
    const char* name = is_inverse ? "ifft2d" : "fft2d";
    type.def(
        name,
        [name, is_inverse](const DistTensor& x, const std::optional<std::string>& norm) {
          dist::Fft2dBatch batch;
          batch.options = {parse_fft_norm(norm.value_or("backward"), name), is_inverse};
          return dist::fft2d(x, batch);
        },
        "norm"_a = nb::none(), Released(),
        "2-D transforms along the last two axes: of one grid by rows, an all-to-all and columns, "
        "in "
        "which the result stays; of several, each on one rank. Collective.");
  }
}

Tensor whole_of(const DistTensor& x, const char* who) {
  const nb::gil_scoped_release released;
  return dist::whole(x, who);
}

/// The only element, by a method of tensors.
nb::object number(const DistTensor& x, const char* who, const char* method) {
  check_one_element(x, who);
  return nb::cast(whole_of(x, who)).attr(method)();
}

void define_number(Class<DistTensor>& type, const char* method, const char* who) {
  type.def(method, [method, who](const DistTensor& x) { return number(x, who, method); });
}

void bind_conversions(Class<DistTensor> type) {
  type.def(
          "item", [](const DistTensor& x) { return number(x, "item", "item"); },
          "The only element as a Python number, on every rank; collective unless all have it. "
          "Raises ShapeError.")
      .def(
          "tolist",
          [](const DistTensor& x) { return nb::cast(whole_of(x, "tolist")).attr("tolist")(); },
          "All elements as nested lists, on every rank; see __array__.")
      .def(
          "__array__",
          [](const DistTensor& x, nb::handle dtype, nb::handle copy) {
            return array_of(whole_of(x, "__array__"), dtype, copy);
          },
          "dtype"_a = nb::none(), "copy"_a = nb::none(),
          "All elements as a NumPy array on every rank. Collective unless all ranks have them; "
          "inside strict() GatherError then.")
      .def(
          "__dlpack__",
          [](const DistTensor& x, nb::handle stream, nb::handle max_version, nb::handle dl_device,
             nb::handle copy) {
            return dlpack_of(whole_of(x, "__dlpack__"), stream, max_version, dl_device, copy);
          },
          nb::kw_only(), "stream"_a = nb::none(), "max_version"_a = nb::none(),
          "dl_device"_a = nb::none(), "copy"_a = nb::none(), "All elements; see __array__.")
      .def("__dlpack_device__", [](const DistTensor& x) { return dlpack_device(x.device()); });
  for (const char* name : {"numpy", "to_numpy"}) {
    type.def(
        name, [name](const DistTensor& x) { return to_numpy(whole_of(x, name)); },
        nb::sig(cat("def ", name, "(self) -> NDArray[Any]").c_str()),
        "All elements as a new NumPy array on every rank; see __array__.");
  }
  define_number(type, "__bool__", "bool");
  define_number(type, "__int__", "int");
  define_number(type, "__float__", "float");
  define_number(type, "__complex__", "complex");
  define_number(type, "__index__", "index");
  type.def("__format__", &formatted<DistTensor>, "format_spec"_a, nb::sig(kFormatStub),
           "Of the only element, as Python formats it; collective unless all ranks have it. "
           "Without a format as str(). Raises ShapeError.");
}

}  // namespace

void bind_dist_methods(Module& m) {
  const auto type = nb::borrow<Class<DistTensor>>(m.attr("DistTensor"));
  bind_indexing(type);
  bind_reductions(type);
  bind_shapes(type);
  bind_dist_transforms(type);
  bind_conversions(type);
  m.def("is_strict", &dist::is_strict, "Whether this thread is inside `strict()`.");
  m.def("_set_strict", &dist::set_strict, "is_strict"_a, "Returns what was before.");
}

}  // namespace cuop::python
