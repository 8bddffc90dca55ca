// cuop.dist: products of many tensors over ranks.
#include "binders.h"
#include "cuop/dist/algo/einsum.h"
#include "dist_arguments.h"
#include "einsum_arguments.h"
#include "parts_operands.h"

namespace cuop::python {

namespace {

using dist::CommunicatorPtr;
using dist::DistTensor;
using OptionalSharding = std::optional<dist::Sharding>;

/// Orders of pairs; what depends on the operands' sizes is not known on every rank.
PathOptions shared_path_options(nb::handle optimize) {
  return path_options(optimize, nb::none(), std::nullopt);
}

std::vector<DistTensor> parts_of(const nb::args& operands) {
  std::vector<DistTensor> parts;
  for (nb::handle operand : operands) {
    if (!is_parts(operand)) {
      throw DTypeError(cat("einsum: operands: a DistTensor is needed, given ", describe(operand)));
    }
    parts.push_back(nb::cast<const DistTensor&>(operand));
  }
  return parts;
}

/// Tensors of the root, undefined for None, in the first step of the call.
std::vector<Tensor> given_operands(const CommunicatorPtr& comm, const nb::args& operands) {
  std::vector<Tensor> tensors;
  for (nb::handle operand : operands) {
    tensors.push_back(operand.is_none() ? Tensor()
                                        : named_argument<Unplaced>(operand, "operands").tensor);
  }
  const nb::gil_scoped_release released;
  return dist::make_together(*comm, "einsum", [&] { return tensors; });
}

dist::TensordotAxes dist_axes(nb::handle dims) {
  const TensordotAxes axes = tensordot_axes(dims, "dims");
  return {axes.count, axes.lists.of_a, axes.lists.of_b, axes.are_listed};
}

}  // namespace

void bind_dist_einsum(Module& m) {
  m.def(
      "einsum",
      [](std::string equation, const nb::args& operands, nb::handle optimize, std::string strategy,
         OptionalSharding output, nb::handle memory_limit) {
        const std::vector<DistTensor> parts = parts_of(operands);
        const PathOptions path = shared_path_options(optimize);
        const std::optional<int64_t> limit = limit_bytes(memory_limit, "einsum");
        const nb::gil_scoped_release released;
        return dist::einsum(equation, parts, path,
                            call_options(std::move(strategy), std::move(output), limit));
      },
      "equation"_a, "operands"_a, "optimize"_a = "auto", "strategy"_a = "", "output"_a = nb::none(),
      "memory_limit"_a = nb::none(),
      nb::sig(
          "def einsum(equation: str, *operands: DistTensor, optimize: object = 'auto', strategy: "
          "str = '', output: Sharding | None = None, memory_limit: int | str | None = None) -> "
          "DistTensor"),
      "cuop.einsum of tensors in parts. The order of pairs (`optimize`, as there) and how each is "
      "split over the ranks are planned together: strategy \"split\", and \"root\" and \"mixed\" "
      "of "
      "tensors on one rank. The result lies as its last pair makes it unless `output` says "
      "otherwise; `memory_limit` is bytes a rank may use, or a size as \"64 MiB\": where no split "
      "fits, indices are sliced as by cuop.einsum, which the plan says. Collective.");
  m.def(
      "einsum_from_root",
      [](const CommunicatorPtr& comm, std::string equation, const nb::args& operands,
         nb::handle optimize, std::string strategy, nb::handle memory_limit) {
        const PathOptions path = shared_path_options(optimize);
        const std::optional<int64_t> limit = limit_bytes(memory_limit, "einsum");
        const std::vector<Tensor> tensors = given_operands(comm, operands);
        const nb::gil_scoped_release released;
        return or_none(dist::einsum_from_root(comm, equation, tensors, path,
                                              call_options(std::move(strategy), {}, limit)));
      },
      "comm"_a, "equation"_a, "operands"_a, "optimize"_a = "auto", "strategy"_a = "",
      "memory_limit"_a = nb::none(),
      nb::sig(
          "def einsum_from_root(comm: Communicator, equation: str, *operands: ArrayLike | None, "
          "optimize: object = 'auto', strategy: str = '', memory_limit: int | str | None = None) "
          "-> "
          "cuop._core.Tensor | None"),
      "The same on rank 0 of tensors given there (None, or nothing, elsewhere).");
  m.def(
      "tensordot",
      [](const DistTensor& a, const DistTensor& b, nb::handle dims, std::string strategy,
         OptionalSharding output, std::optional<int64_t> memory_limit) {
        const dist::TensordotAxes axes = dist_axes(dims);
        const nb::gil_scoped_release released;
        return dist::tensordot(a, b, axes,
                               call_options(std::move(strategy), std::move(output), memory_limit));
      },
      "a"_a, "b"_a, "dims"_a = 2, nb::kw_only(), "strategy"_a = "", "output"_a = nb::none(),
      "memory_limit"_a = nb::none(),
      "Sum over paired dimensions, the last and first `dims` ones or (dims of a, dims of b), "
      "planned as an einsum. Collective.");
  m.def(
      "tensordot_from_root",
      [](const CommunicatorPtr& comm, MaybeTensor a, MaybeTensor b, nb::handle dims,
         std::string strategy) {
        const dist::TensordotAxes axes = dist_axes(dims);
        const nb::gil_scoped_release released;
        const std::vector<Tensor> inputs = given(comm, "tensordot", {&a, &b});
        return or_none(dist::tensordot_from_root(comm, inputs[0], inputs[1], axes,
                                                 call_options(std::move(strategy))));
      },
      "comm"_a, "a"_a.none(), "b"_a.none(), "dims"_a = 2, nb::kw_only(), "strategy"_a = "",
      "The same on rank 0 of tensors given there (None elsewhere).");
}

}  // namespace cuop::python
