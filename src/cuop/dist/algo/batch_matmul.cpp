#include <algorithm>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/algo/matmul.h"
#include "cuop/dist/algo/operations.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/map.h"
#include "cuop/ops/matmul/matmul.h"

namespace cuop::dist {
namespace {

Shape batch_of(const Shape& x) {
  Shape batch;
  for (int dim = 0; dim < x.ndim() - 2; ++dim) batch.push_back(x[dim]);
  return batch;
}

/// The box of an operand that a box of the result reads: the inner dimension (`inner`, counted from
/// the end) whole, the rest as the result's.
Box needed_box(const Shape& operand, int inner, const Box& output) {
  Box source = output;
  const int axis = output.ndim() - inner;
  const Interval whole{0, operand[operand.ndim() - inner]};
  source.set_interval(axis, whole);
  return broadcast_source(source, operand);
}

/// Whether an operand of the result's dimensions keeps its inner dimension on one rank.
bool leads_result(const Placement& operand, int inner, const Shape& result) {
  const int ndim = result.ndim();
  return operand.sharding.single_rank() < 0 && operand.shape.ndim() == ndim &&
         batch_of(operand.shape) == batch_of(result) &&
         operand.sharding.spec().axes(ndim - inner).empty();
}

Mapping map_product(const std::vector<Placement>& inputs) {
  if (inputs.size() != 2) throw ExecutionError("batch_matmul: b was not given");
  constexpr int kInner[] = {1, 2};  // of a and of b
  Mapping mapping;
  mapping.op = "batch_matmul";
  mapping.shape = batch_matmul_shape(inputs[0].shape, inputs[1].shape);
  mapping.dtype = promote(inputs[0].dtype, inputs[1].dtype);
  mapping.needed = [inputs, kInner](size_t i, const Box& box) {
    return needed_box(inputs[i].shape, kInner[i], box);
  };
  const int ndim = mapping.shape.ndim();
  for (size_t i = 0; i < 2; ++i) {
    if (leads_result(inputs[i], kInner[i], mapping.shape)) {
      mapping.choices.push_back({i == 0 ? "keep_a" : "keep_b", inputs[i].sharding});
    }
  }
  const auto longest = std::max_element(mapping.shape.begin(), mapping.shape.end() - 2);
  const std::vector<SplitDim> dims{{static_cast<int>(longest - mapping.shape.begin()), "batch"},
                                   {ndim - 2, "row"},
                                   {ndim - 1, "column"}};
  const int ranks = inputs[0].sharding.mesh().size();
  for (MapChoice& choice : split_choices(ranks, ndim, dims)) {
    mapping.choices.push_back(std::move(choice));
  }
  const auto inner = static_cast<double>(inputs[0].shape[inputs[0].shape.ndim() - 1]);
  mapping.flops_per_element = 2.0 * inner;
  const auto rows = static_cast<double>(mapping.shape[ndim - 2]),
             columns = static_cast<double>(mapping.shape[ndim - 1]);
  mapping.product = ProductSides{rows, columns, inner};
  mapping.may_chunk = true;
  mapping.work = [](const std::vector<Part>& parts, const Box&, const Tensor* out) {
    return cuop::matmul(parts[0].local, parts[1].local, {}, out);
  };
  return mapping;
}

}  // namespace

const Operation& batch_matmul_operation() {
  static const auto* const operation = [] {
    auto* const made = new Operation(
        map_operation("batch_matmul", {"a", "b"},
                      [](const auto& inputs, const std::string&) { return map_product(inputs); }));
    made->alone = [](const Plan&, const std::vector<Tensor>& inputs) {
      return cuop::matmul(inputs[0], inputs[1]);
    };
    return made;
  }();
  return *operation;  // never destroyed: threads may outlive statics
}

Shape batch_matmul_shape(const Shape& a, const Shape& b) {
  const bool is_batch = a.ndim() >= 2 && b.ndim() >= 2 && std::max(a.ndim(), b.ndim()) >= 3;
  if (!is_batch || a[a.ndim() - 1] != b[b.ndim() - 2]) {
    throw ShapeError(cat("batch_matmul: shapes ", a, " and ", b,
                         " do not fit; needed are (..., M, K) and (..., K, N) or (K, N), one of "
                         "them with a batch"));
  }
  Shape shape = broadcast_shapes(batch_of(a), batch_of(b), "batch_matmul");
  shape.push_back(a[a.ndim() - 2]);
  shape.push_back(b[b.ndim() - 1]);
  return shape;
}

DistTensor batch_matmul(const DistTensor& a, const DistTensor& b, const CallOptions& options) {
  return run_sharded(batch_matmul_operation(), {a, b}, options);
}

Tensor batch_matmul_from_root(const CommunicatorPtr& comm, const Tensor& a, const Tensor& b,
                              const CallOptions& options) {
  return run_rooted(comm, batch_matmul_operation(), {a, b}, options);
}

}  // namespace cuop::dist
