#include "binders.h"
#include "cuop/core/text.h"
#include "cuop/ops/reduce/partial.h"

namespace cuop::python {

namespace {

ReduceKind parse_kind(std::string_view text) {
  constexpr ReduceKind kKinds[] = {ReduceKind::kSum, ReduceKind::kMean, ReduceKind::kProd,
                                   ReduceKind::kMax, ReduceKind::kMin,  ReduceKind::kAny,
                                   ReduceKind::kAll, ReduceKind::kVar,  ReduceKind::kStd};
  for (const ReduceKind kind : kKinds) {
    if (text == name(kind)) return kind;
  }
  throw ExecutionError(
      cat("PartialReduction: kind: '", text,
          "' is unknown; known are sum, mean, prod, max, min, any, all, var, std"));
}

}  // namespace

void bind_partial(Module& m) {
  Class<PartialReduction>(
      m, "PartialReduction",
      "A reduction in parts: `fold` what is here, exchange the bytes, `merge`, `finish`. With "
      "mode=\"exact\", and for integers, max, min, any and all, the result does not depend on how "
      "the elements were split.")
      .def(
          "__init__",
          [](PartialReduction* self, std::string_view kind, Arg<DType> dtype,
             std::string_view mode) {
            new (self) PartialReduction(parse_kind(kind), parse_sum_mode(mode), dtype);
          },
          "kind"_a, "dtype"_a, "mode"_a = "plain",
          "`dtype` is that of the elements; kinds are sum, mean, prod, max, min, any, all, var, "
          "std.")
      .def_prop_ro("state_bytes", &PartialReduction::state_bytes, "Bytes of one state.")
      .def(
          "fold",
          [](const PartialReduction& self, Arg<Tensor> x, std::optional<Arg<Axes>> axis) {
            return self.fold(x, axis ? cuop::Axes::exactly((*axis)->values) : cuop::Axes());
          },
          "x"_a, "axis"_a = nb::none(), Released(),
          "States of x over `axis` (None: all, (): none): uint8, one row of state_bytes a result. "
          "The "
          "identity where x has no elements.")
      .def("merge", &PartialReduction::merge, "into"_a, "other"_a, Released(),
           "Merges the states of another part into the first ones, in place.")
      .def(
          "finish",
          [](const PartialReduction& self, const Tensor& states, int64_t count,
             std::optional<Tensor> out) { return self.finish(states, count, pointer(out)); },
          "states"_a, "count"_a, nb::kw_only(), "out"_a = nb::none(), ReturnsOut(), Released(),
          "The values of states that have seen `count` elements each.");
}

}  // namespace cuop::python
