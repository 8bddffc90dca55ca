#include "binders.h"
#include "cuop/ops/sort/sort.h"

namespace cuop::python {

namespace {

using Order = Tensor (*)(const Tensor&, int64_t, bool, const Tensor*);

void define_order(Module& m, const char* name, Order order, const char* doc) {
  m.def(
      name,
      [order](Arg<Tensor> x, int64_t axis, bool descending, std::optional<Tensor> out) {
        return order(x, axis, descending, pointer(out));
      },
      "x"_a, "axis"_a = -1, "descending"_a = false, "out"_a = nb::none(), ReturnsOut(), Released(),
      doc);
}

}  // namespace

void bind_sort(Module& m) {
  define_order(m, "sort", &sort,
               "The elements in order along `axis`; NaN counts as larger than every number. bool, "
               "integers and real floats. Raises DTypeError, ShapeError.");
  define_order(m, "argsort", &argsort,
               "The int64 positions along `axis` that sort x; equal elements keep their order.");
  m.def(
      "unique",
      [](Arg<Tensor> x, bool return_index, bool return_inverse, bool return_counts) -> nb::object {
        const Unique result = named_call([] { return Call::place("x"); },
                                         [&] { return without_gil([&] { return unique(x); }); });
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
}

}  // namespace cuop::python
