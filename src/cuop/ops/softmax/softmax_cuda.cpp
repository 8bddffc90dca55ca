#include "cuop/backend/execution.h"
#include "cuop/core/divide_up.h"
#include "cuop/jit/build_options.h"
#include "cuop/jit/cuda/row_plan.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/softmax/softmax_arguments.cuh"
#include "cuop/ops/softmax/softmax_kernels.h"

namespace cuop::kernels {

namespace {

constexpr int64_t kShortColumn = 16;  // is left to one thread
constexpr int kMostLanes = 32;        // of one column

jit::TextKernel kernel(bool is_log, std::string call, int threads, int resident = 1) {
  return {is_log ? "log_softmax" : "softmax",
          "cuop/ops/softmax/softmax.cuh",
          "SoftmaxArguments",
          std::move(call),
          threads,
          resident};
}

}  // namespace

jit::RowPlan softmax_rows_plan(int64_t length, DType dtype,
                               std::initializer_list<const void*> addresses) {
  const int own_registers = dtype == DType::kFloat64 ? 44 : 20;
  return jit::plan_rows(length, length, dtype, own_registers, addresses);
}

jit::TextKernel softmax_rows_kernel(DType dtype, const jit::RowPlan& plan, bool is_log) {
  return kernel(is_log, jit::instance("softmax_rows", dtype, plan.text(), is_log), plan.threads(),
                plan.resident);
}

jit::TextKernel softmax_columns_kernel(DType dtype, int lanes, bool is_log) {
  return kernel(is_log, jit::instance("softmax_columns", dtype, lanes, is_log),
                jit::block_threads(jit::kSoftmaxThreads));
}

void softmax_cuda(const Tensor& x, int axis, bool is_log, const Tensor& out) {
  jit::SoftmaxArguments arguments{x.data(), out.data(), 1, x.shape(axis), 1};
  for (int i = 0; i < axis; ++i) arguments.outer *= x.shape(i);
  for (int i = axis + 1; i < x.ndim(); ++i) arguments.inner *= x.shape(i);
  if (arguments.inner == 1) {
    const jit::RowPlan plan =
        softmax_rows_plan(arguments.length, x.dtype(), {x.data(), out.data()});
    jit::launch_text(softmax_rows_kernel(x.dtype(), plan, is_log), x.device(),
                     plan.blocks(arguments.outer), &arguments);
  } else {
    const int team = backend::execution_options().kernel.shape.team;
    const int lanes = team != 0 && team <= kMostLanes    ? team
                      : arguments.length <= kShortColumn ? 1
                                                         : 8;
    const int64_t columns = jit::block_threads(jit::kSoftmaxThreads) / lanes;
    jit::launch_text(softmax_columns_kernel(x.dtype(), lanes, is_log), x.device(),
                     divide_up(arguments.outer * arguments.inner, columns), &arguments);
  }
}

}  // namespace cuop::kernels
