#include <limits>
#include <vector>

#include "cuop/jit/cuda/row_plan.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/jit/tensor_expr.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/norm/norm_arguments.cuh"
#include "cuop/ops/norm/norm_kernels.h"
#include "cuop/ops/reduce/reduce_kernels.h"

namespace cuop::kernels {

jit::RowPlan norm_rows_plan(int64_t length, int64_t inner, DType dtype,
                            std::initializer_list<const void*> addresses,
                            std::initializer_list<const void*> parameters) {
  constexpr int kOwnRegisters = 44;
  return jit::plan_rows(length, inner > 1 ? inner : length, dtype, kOwnRegisters, addresses,
                        parameters);
}

jit::TextKernel norm_rows_kernel(DType dtype, const jit::RowPlan& plan, bool is_centred,
                                 NormGroup group) {
  static constexpr const char* kGroups[] = {"void", "uint32_t", "uint64_t"};
  return {
      is_centred ? "layer_norm" : "rms_norm",
      "cuop/ops/norm/norm.cuh",
      "NormArguments",
      jit::instance("norm_rows", dtype, plan.text(), is_centred, kGroups[static_cast<int>(group)]),
      plan.threads(),
      plan.resident};
}

void row_norm_cuda(const Tensor& x, const RowNorm& norm, const Tensor& gamma, const Tensor& beta,
                   const Tensor& out) {
  const jit::NormArguments arguments{x.data(),     out.data(),
                                     gamma.data(), beta.is_defined() ? beta.data() : nullptr,
                                     norm.rows,    norm.channels * norm.inner,
                                     norm.inner,   norm.eps};
  NormGroup group = NormGroup::kNone;
  if (norm.inner > 1) {
    const bool is_narrow = arguments.length <= std::numeric_limits<uint32_t>::max();
    group = is_narrow ? NormGroup::kNarrow : NormGroup::kWide;
  }
  const jit::RowPlan plan =
      norm_rows_plan(arguments.length, norm.inner, x.dtype(), {arguments.x, arguments.y},
                     {arguments.gamma, arguments.beta});
  jit::launch_text(norm_rows_kernel(x.dtype(), plan, norm.is_centred, group), x.device(),
                   plan.blocks(norm.rows), &arguments);
}

void channel_affine_cuda(const Tensor& x, int64_t inner, const Tensor& mean, const Tensor& scale,
                         const Tensor& shift, const Tensor& out) {
  const int64_t channels = mean.size();
  const Shape shape{x.size() / (channels * inner), channels, inner};
  const Tensor in = reshape(x, shape), to = reshape(out, shape);
  const Tensor center = reshape(mean, {channels, 1}), factor = reshape(scale, {channels, 1}),
               offset = reshape(shift, {channels, 1});
  jit::TensorExpr expr;
  int value = expr.cast(expr.leaf(in), DType::kFloat64);
  value = expr.op("subtract", {value, expr.leaf(center)});
  value = expr.op("multiply", {value, expr.leaf(factor)});
  value = expr.op("add", {value, expr.leaf(offset)});
  expr.write(value, to);
}

void channel_moments_cuda(const Tensor& x, const Tensor& mean, const Tensor& variance) {
  std::vector<int> axes;
  Shape kept;  // results of reductions keep the reduced axes
  for (int axis = 0; axis < x.ndim(); ++axis) {
    if (axis != 1) axes.push_back(axis);
    kept.push_back(axis == 1 ? x.shape(1) : 1);
  }
  reduce_cuda("batch_norm", {ReduceKind::kMean}, x, axes, reshape(mean, kept));
  reduce_cuda("batch_norm", {ReduceKind::kVar}, x, axes, reshape(variance, kept));
}

}  // namespace cuop::kernels
