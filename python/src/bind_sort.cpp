#include "binders.h"
#include "cuop/core/text.h"
#include "cuop/ops/sort/search.h"
#include "cuop/ops/sort/sort.h"

namespace cuop::python {

namespace {

using Order = Tensor (*)(const Tensor&, int64_t, bool, const Tensor*);

/// sort or argsort, which are stable whether that is asked for or not.
auto ordered(Order order) {
  return [order](Arg<Tensor> x, int64_t axis, bool descending, bool, std::optional<Tensor> out) {
    return order(x, axis, descending, pointer(out));
  };
}

template <class Definer, class... First>
void define_order(Definer& definer, const char* name, Order order, const char* doc,
                  const First&... first) {
  definer.def(name, ordered(order), first..., "axis"_a = -1, "descending"_a = false, nb::kw_only(),
              "stable"_a = true, "out"_a = nb::none(), ReturnsOut(), Released(), doc);
}

Unique unique_of(const Arg<Tensor>& x, const UniqueParts& wanted) {
  return named_call([] { return Call::place("x"); },
                    [&] { return without_gil([&] { return unique(x, wanted); }); });
}

/// A function whose result is a named tuple of cuop.results.
template <class... Parts>
void define_unique(Module& m, const char* name, const char* result, const char* doc,
                   Parts... parts) {
  const auto is_wanted = [=](Tensor Unique::*part) { return ((part == parts) || ...); };
  const UniqueParts wanted{is_wanted(&Unique::index), is_wanted(&Unique::inverse),
                           is_wanted(&Unique::counts)};
  const auto find = [=](const Arg<Tensor>& x) {
    const Unique found = unique_of(x, wanted);
    return nb::module_::import_("cuop.results").attr(result)(found.*parts...);
  };
  m.def(name, find, "x"_a, nb::sig(cat("def ", name, "(x: ArrayLike) -> ", result).c_str()), doc);
}

bool is_right_side(const std::string& side) {
  if (side != "left" && side != "right") {
    throw ExecutionError(cat("searchsorted: side is '", side, "'; known are left and right"));
  }
  return side == "right";
}

}  // namespace

void bind_sort(Module& m) {
  auto type = nb::borrow<Class<Tensor>>(m.attr("Tensor"));
  define_order(m, "sort", &sort,
               "The elements in order along `axis`; NaN counts as larger than every number. bool, "
               "integers and real floats. Equal elements keep their order, also when `stable` is "
               "False. Raises DTypeError, ShapeError.",
               "x"_a);
  constexpr const char* kArgsortDoc =
      "The int64 positions along `axis` that sort x; equal elements keep their order, also when "
      "`stable` is False.";
  define_order(m, "argsort", &argsort, kArgsortDoc, "x"_a);
  define_order(type, "argsort", &argsort, kArgsortDoc);
  m.def(
      "searchsorted",
      [](Arg<Tensor> sorted, Arg<Tensor> values, const std::string& side,
         const std::optional<Arg<Tensor>>& sorter, std::optional<Tensor> out) {
        const Tensor* order = sorter ? &**sorter : nullptr;
        return named_call("searchsorted", [&] {
          return searchsorted(sorted, values, is_right_side(side), order, pointer(out));
        });
      },
      "x1"_a, "x2"_a, nb::kw_only(), "side"_a = "left", "sorter"_a = nb::none(),
      "out"_a = nb::none(), ReturnsOut(), Released(),
      "For each value of x2 the place in x1, of 1 dimension and rising, before which it can be "
      "put: "
      "how many elements of x1 are smaller, with side='right' smaller or equal. int64 of x2's "
      "shape. NaN counts as larger than every number. Where x1 is not in order, `sorter` are the "
      "positions that sort it. bool, integers and real floats. Raises ShapeError, DTypeError, "
      "IndexError and ExecutionError (side).");
  m.def(
      "unique",
      [](Arg<Tensor> x, bool return_index, bool return_inverse, bool return_counts) -> nb::object {
        const Unique result = unique_of(x, {return_index, return_inverse, return_counts});
        nb::list results;
        results.append(result.values);
        if (return_index) results.append(result.index);
        if (return_inverse) results.append(result.inverse);
        if (return_counts) results.append(result.counts);
        if (nb::len(results) == 1) return nb::cast(result.values);
        return nb::tuple(results);
      },
      "x"_a, "return_index"_a = false, "return_inverse"_a = false, "return_counts"_a = false,
      "The distinct elements in rising order; on request also the positions of their first "
      "occurrences, the indices that rebuild x, and how often each occurs.");
  define_unique(m, "unique_all", "UniqueAll",
                "`values`, `indices`, `inverse_indices` and `counts` of the distinct elements: in "
                "rising order, where each occurs first, x = values[inverse_indices], and how often "
                "each occurs. All NaN are one element. Raises DTypeError.",
                &Unique::values, &Unique::index, &Unique::inverse, &Unique::counts);
  define_unique(m, "unique_counts", "UniqueCounts",
                "`values`, the distinct elements in rising order, and `counts`, how often each "
                "occurs. All NaN are one element. Raises DTypeError.",
                &Unique::values, &Unique::counts);
  define_unique(m, "unique_inverse", "UniqueInverse",
                "`values`, the distinct elements in rising order, and `inverse_indices`: x = "
                "values[inverse_indices]. All NaN are one element. Raises DTypeError.",
                &Unique::values, &Unique::inverse);
  m.def(
      "unique_values",
      [](const Arg<Tensor>& x) {
        return unique_of(x, {false, false, false}).values;
      },
      "x"_a, "The distinct elements in rising order. All NaN are one element. Raises DTypeError.");
}

}  // namespace cuop::python
