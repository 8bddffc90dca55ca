#include "binders.h"
#include "cuop/ops/sort/sort.h"

namespace cuop::python {

void bind_sort(Module& m) {
  m.def(
      "sort",
      [](Arg<Tensor> x, int64_t axis, bool descending, std::optional<Tensor> out) {
        return sort(x, axis, descending, pointer(out));
      },
      "x"_a, "axis"_a = -1, "descending"_a = false, "out"_a = nb::none(), ReturnsOut(), Released(),
      "The elements in order along `axis`; NaN counts as larger than every number. bool, integers "
      "and real floats. Raises DTypeError, ShapeError.");
  m.def(
      "argsort",
      [](Arg<Tensor> x, int64_t axis, bool descending, std::optional<Tensor> out) {
        return argsort(x, axis, descending, pointer(out));
      },
      "x"_a, "axis"_a = -1, "descending"_a = false, "out"_a = nb::none(), ReturnsOut(), Released(),
      "The int64 positions along `axis` that sort x; equal elements keep their order.");
  m.def(
      "unique",
      [](Arg<Tensor> x, bool return_index, bool return_inverse, bool return_counts) -> nb::object {
        Unique result;
        {
          const nb::gil_scoped_release released;
          result = unique(x);
        }
        nb::list answer;
        answer.append(result.values);
        if (return_index) answer.append(result.index);
        if (return_inverse) answer.append(result.inverse);
        if (return_counts) answer.append(result.counts);
        if (nb::len(answer) == 1) return nb::cast(result.values);
        return nb::tuple(answer);
      },
      "x"_a, "return_index"_a = false, "return_inverse"_a = false, "return_counts"_a = false,
      "The distinct elements in rising order; on request also the positions of their first "
      "occurrences, the indices that rebuild x, and how often each occurs.");
}

}  // namespace cuop::python
