// States of partial reductions on a GPU, once they have been folded.
#include "cuop/core/divide_up.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/reduce/reduce_kernels.h"

namespace cuop::kernels {

namespace {

constexpr int kThreads = jit::kStateThreads;
constexpr const char* kText = "cuop/ops/reduce/states.cuh";

/// Null where states are values.
const char* state_type(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kCompensatedSum:
      return "Compensated<double>";
    case ReduceKind::kExactSum:
      return "ExactSum";
    case ReduceKind::kMoments:
      return "Moments";
    default:
      return nullptr;
  }
}

int64_t count_of(const FoldInput& input, const Tensor& states) {
  return states.nbytes() / fold_cpu(input.kind, input.element).state_bytes;
}

int64_t blocks_for(ReduceKind kind, int64_t count) {
  return divide_up(count, kind == ReduceKind::kExactSum ? kThreads / 32 : kThreads);
}

/// States that are values, as such.
Tensor values_of(const FoldInput& input, const Tensor& states) {
  const int64_t bytes = itemsize(input.element);
  return {states.storage(),
          {{states.nbytes() / bytes}, {1}, states.layout().offset / bytes},
          input.element};
}

void merge_values(ReduceKind kind, const Tensor& into, const Tensor& from) {
  switch (kind) {
    case ReduceKind::kProd:
      multiply(into, from, &into);
      return;
    case ReduceKind::kMax:
      maximum(into, from, &into);
      return;
    case ReduceKind::kMin:
      minimum(into, from, &into);
      return;
    default:
      add(into, from, &into);
  }
}

}  // namespace

jit::TextKernel merge_states_kernel(ReduceKind kind) {
  return {"merge_states", kText, "MergedStates", jit::instance("merge_states", state_type(kind)),
          kThreads};
}

jit::TextKernel finish_states_kernel(ReduceKind kind, DType value) {
  const char* const type = jit::text_type(value);
  return {"finish_states", kText, "FinishedStates",
          kind == ReduceKind::kExactSum ? jit::instance("finish_exact_states", type)
                                        : jit::instance("finish_states", state_type(kind), type),
          kThreads};
}

void merge_states_cuda(const FoldInput& input, const Tensor& into, const Tensor& from) {
  if (state_type(input.kind) == nullptr) {
    return merge_values(input.kind, values_of(input, into), values_of(input, from));
  }
  const int64_t count = count_of(input, into);
  const jit::MergedStates arguments{into.data(), from.data(), count};
  jit::launch_text(merge_states_kernel(input.kind), into.device(), blocks_for(input.kind, count),
                   &arguments);
}

Tensor finish_states_cuda(const Reduction& reduction, const FoldInput& input, const Tensor& states,
                          int64_t count, DType result) {
  if (state_type(input.kind) == nullptr) {
    const Tensor values = values_of(input, states);
    return reduction.kind == ReduceKind::kMean ? divide(values, static_cast<double>(count))
                                               : values;
  }
  if (input.kind == ReduceKind::kExactSum && is_integer(result)) {
    // The CPU refuses sums that do not fit.
    return to_device(finish_states(reduction, input, to_device(states, kCpu), count, result),
                     states.device());
  }
  const int64_t n = count_of(input, states);
  const DType value = result == DType::kFloat32 ? result : DType::kFloat64;
  const Tensor values = empty({n}, value, states.device());
  const jit::FinishedStates arguments{states.data(), values.data(), n,
                                      finish_of(reduction, count, result)};
  jit::launch_text(finish_states_kernel(input.kind, value), states.device(),
                   blocks_for(input.kind, n), &arguments);
  return values;
}

}  // namespace cuop::kernels
