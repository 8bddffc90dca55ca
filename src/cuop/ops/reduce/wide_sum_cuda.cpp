// Compensated and exact sums on a GPU, cut as the CPU cuts them.
#include <algorithm>

#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/jit/cuda/arrivals.h"
#include "cuop/jit/cuda/row_plan.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/jit/kernels/compensated.h"
#include "cuop/jit/kernels/exact_sum.h"
#include "cuop/memory/current.h"
#include "cuop/ops/places.h"
#include "cuop/ops/reduce/reduce_kernels.h"

namespace cuop::kernels {

namespace {

using Kind = WideSumForm::Kind;

/// Steps of one thread that are worth a part of its own.
constexpr int64_t kMinSteps = 32;
/// Blocks a multiprocessor should have before states are shared among blocks.
constexpr int64_t kBusyBlocks = 4;
constexpr int64_t kMaxParts = 1024;
/// Elements of a part: their superaccumulator takes in twice as many without carries.
constexpr int64_t kMaxPart = ExactSum::kMaxPending / 2;

/// Elements that a compensated sum takes at a time.
int taken(DType element) { return element == DType::kFloat32 ? 8 : 1; }

void plan_short_rows(WideSumPlan& plan) {
  const int64_t round = 32 * taken(plan.form.element);
  plan.form.kind = Kind::kShortRows;
  plan.form.team = plan.arguments.length < round ? 1 : 32;
  plan.arguments.units = plan.arguments.states;
  plan.blocks = divide_up(plan.arguments.states * plan.form.team, jit::kSumThreads);
}

void plan_rows(WideSumPlan& plan, const FoldPlan& fold) {
  const bool is_split =
      fold.is_direct && fold.reduced.count > 1 && fold.reduced.inner().size >= FoldCuts::kShortRun;
  const bool is_whole = fold.is_direct && (is_split || fold.reduced.count == 1);
  plan.form.kind = Kind::kRows;
  plan.form.is_linear = is_split || fold.reduced.count == 1;
  plan.arguments.chunk = is_whole ? FoldCuts::kChunk : FoldCuts::kPackedChunk;
  plan.arguments.parts = divide_up(plan.arguments.length, FoldCuts::kPart);
  plan.arguments.units = plan.arguments.states * plan.arguments.parts;
  plan.blocks = plan.arguments.units;
  plan.arrivals =
      plan.arguments.states * jit::groups_of_parts(plan.arguments.parts, jit::kRowPartsTogether);
}

void plan_columns(WideSumPlan& plan, const FoldPlan& fold) {
  plan.form.kind = Kind::kColumns;
  plan.arguments.chunk = fold.is_direct ? FoldCuts::kMaxRowChunk : FoldCuts::kPackedRows;
  plan.arguments.parts = divide_up(plan.arguments.length, FoldCuts::kRowPart);
  const int64_t groups =
      fold.kept.outer_size() * divide_up(fold.kept.inner().size, jit::kSumColumns);
  plan.arguments.units = groups * plan.arguments.parts;
  plan.blocks = plan.arguments.units;
  plan.arrivals = groups * jit::groups_of_parts(plan.arguments.parts, jit::kColumnPartsTogether);
}

void plan_exact(WideSumPlan& plan, const FoldPlan& fold, int64_t multiprocessors) {
  jit::WideSum& a = plan.arguments;
  plan.form.kind = Kind::kExact;
  plan.form.by_columns = fold.by_columns;
  const bool is_long = a.length >= 2048 && !fold.by_columns;
  plan.form.team = is_long ? jit::kSumThreads : a.length >= 64 && !fold.by_columns ? 32 : 8;
  const int64_t states = jit::kSumThreads / plan.form.team, groups = divide_up(a.states, states);
  const int64_t wanted = divide_up(kBusyBlocks * multiprocessors, groups);
  const int64_t worthwhile = a.length / (plan.form.team * kMinSteps);
  a.parts = std::clamp<int64_t>(std::min(wanted, worthwhile), 1, kMaxParts);
  constexpr int64_t kWhole = 64;  // elements: parts begin with whole packs of 16 bytes
  a.chunk = std::min(divide_up(divide_up(a.length, a.parts), kWhole) * kWhole, kMaxPart);
  a.parts = divide_up(a.length, a.chunk);
  a.units = groups * a.parts;
  plan.blocks = a.units;
  plan.arrivals = groups * jit::groups_of_parts(a.parts, jit::kExactPartsTogether);
  plan.partial_bytes = a.units * states * ExactSum::kWords * 8;
}

/// Starts the plan's kernel on elements from `data` on.
void start(WideSumPlan plan, const std::byte* data, void* result, Device device) {
  std::shared_ptr<Storage> partials;
  std::optional<jit::Arrivals> arrivals;
  plan.arguments.x = data;
  plan.arguments.result = result;
  if (plan.arguments.parts > 1) {
    partials = memory::allocate_storage(plan.partial_bytes, device);
    arrivals.emplace(plan.arrivals, current_stream(device));
    plan.arguments.partials = partials->data();
    plan.arguments.arrivals = arrivals->data();
  }
  jit::launch_text(wide_sum_kernel(plan.form), device, plan.blocks, &plan.arguments);
}

}  // namespace

jit::TextKernel wide_sum_kernel(const WideSumForm& form) {
  const char* const result = form.gives_states ? "RawState" : jit::text_type(form.result);
  if (form.kind == Kind::kExact) {
    return {"exact_sum", "cuop/ops/reduce/exact_sum.cuh", "WideSum",
            jit::instance("exact_sums", form.source, !is_floating(form.element), form.is_linear,
                          form.team, form.by_columns, result),
            jit::kSumThreads};
  }
  const char* names[] = {"compensated_short_rows", "compensated_rows", "compensated_columns"};
  const std::string team = form.kind == Kind::kShortRows ? cat(form.team, ", ") : std::string();
  return {"compensated_sum", "cuop/ops/reduce/compensated_sum.cuh", "WideSum",
          jit::instance(names[static_cast<size_t>(form.kind)], form.source, taken(form.element),
                        form.is_linear, team + result),
          form.kind == Kind::kRows ? jit::kSumRowThreads : jit::kSumThreads};
}

jit::TextKernel joined_sum_kernel(DType result, bool gives_states) {
  return {"compensated_sum", "cuop/ops/reduce/compensated_sum.cuh", "JoinedSum",
          jit::instance("compensated_joined", gives_states ? "RawState" : jit::text_type(result)),
          jit::kSumThreads};
}

void WideSumPlan::place_results(const FoldPlan& fold) {
  for (int i = 0; i < fold.kept.count; ++i) {
    arguments.kept.strides[1][i] = fold.kept.axes[static_cast<size_t>(i)].strides[1];
  }
}

WideSumPlan plan_wide_sum(const FoldPlan& fold, const DType* result, int64_t multiprocessors) {
  WideSumPlan plan;
  plan.form.source = fold.source;
  plan.form.element = fold.input.element;
  plan.form.is_linear = fold.reduced.count == 1;
  plan.form.gives_states = result == nullptr;
  if (result != nullptr) plan.form.result = *result;
  jit::WideSum& a = plan.arguments;
  a.kept = places_of(fold.kept);
  a.reduced = places_of(fold.reduced);
  int64_t stride = 1;
  for (int i = fold.kept.count - 1; result == nullptr && i >= 0; --i) {
    a.kept.strides[1][i] = stride;
    stride *= a.kept.sizes[i];
  }
  a.states = fold.states();
  a.length = fold.length();
  a.parts = 1;
  if (fold.input.kind == ReduceKind::kExactSum) {
    plan_exact(plan, fold, multiprocessors);
    return plan;
  }
  if (fold.by_columns) {
    plan_columns(plan, fold);
  } else if (a.length <= FoldCuts::kChunk) {
    plan_short_rows(plan);
  } else {
    plan_rows(plan, fold);
  }
  plan.partial_bytes = a.states * a.parts * static_cast<int64_t>(sizeof(Compensated<double>));
  return plan;
}

namespace {

/// Rows that the CPU folds side by side: their states, those of the rows left over, and one kernel
/// more that merges them.
void start_joined(const JoinedFold& joined, const FoldPlan& fold, const WideSumPlan& whole,
                  const std::byte* data, void* result, Device device) {
  constexpr int64_t kBytes = sizeof(Compensated<double>);
  const int64_t multiprocessors = 1;  // of no interest to compensated sums
  const auto wide = memory::allocate_storage(joined.wide.states() * kBytes, device);
  start(plan_wide_sum(joined.wide, nullptr, multiprocessors), data, wide->data(), device);
  std::shared_ptr<Storage> rest;
  if (joined.rest_rows > 0) {
    rest = memory::allocate_storage(fold.states() * kBytes, device);
    start(plan_wide_sum(joined.rest, nullptr, multiprocessors),
          data + joined.rest_offset * itemsize(fold.source), rest->data(), device);
  }
  jit::JoinedSum arguments{wide->data(), rest ? rest->data() : nullptr, fold.kept.inner().size,
                           joined.join, whole.arguments};
  arguments.sum.result = result;
  jit::launch_text(joined_sum_kernel(whole.form.result, whole.form.gives_states), device,
                   divide_up(fold.states(), jit::kSumThreads), &arguments);
}

/// Where rows are folded side by side, how.
JoinedFold joined_rows_of(const FoldPlan& fold) {
  const bool may_join = fold.by_columns && fold.input.kind == ReduceKind::kCompensatedSum;
  return may_join ? join_rows(fold) : JoinedFold{};
}

/// Starts what the plan of a fold of x needs.
void run(const FoldPlan& fold, const WideSumPlan& plan, const Tensor& x, void* result) {
  const auto* data = static_cast<const std::byte*>(x.data());
  const JoinedFold joined = joined_rows_of(fold);
  if (joined.join > 1) {
    start_joined(joined, fold, plan, data, result, x.device());
  } else {
    start(plan, data, result, x.device());
  }
}

int64_t multiprocessors_of(Device device) {
  return backend::cuda::cuda_runtime(device).properties().multiprocessors;
}

}  // namespace

void wide_states_cuda(const char* who, const FoldInput& input, const Tensor& x,
                      const std::vector<int>& axes, const Tensor& states) {
  Shape shape = x.shape();
  for (const int axis : axes) shape[axis] = 1;
  const FoldPlan fold = plan_fold(who, input, x, contiguous_layout(shape), axes);
  WideSumPlan plan = plan_wide_sum(fold, nullptr, multiprocessors_of(x.device()));
  plan.place_results(fold);
  run(fold, plan, x, states.data());
}

namespace {

/// What `start` takes.
int64_t shared_bytes(const WideSumPlan& plan) {
  if (plan.arguments.parts == 1) return 0;
  const int64_t own = plan.arrivals > jit::Arrivals::kKept ? plan.arrivals : 0;
  return plan.partial_bytes + own * static_cast<int64_t>(sizeof(unsigned));
}

}  // namespace

int64_t wide_bytes_cuda(const char* who, const FoldInput& input, const Tensor& x,
                        const std::vector<int>& axes, int64_t multiprocessors) {
  Shape shape = x.shape();
  for (const int axis : axes) shape[axis] = 1;
  const FoldPlan fold = plan_fold(who, input, x, contiguous_layout(shape), axes);
  const JoinedFold joined = joined_rows_of(fold);
  if (joined.join == 1) return shared_bytes(plan_wide_sum(fold, nullptr, multiprocessors));
  constexpr int64_t kBytes = sizeof(Compensated<double>);
  const auto of = [&](const FoldPlan& part) {
    return shared_bytes(plan_wide_sum(part, nullptr, multiprocessors));
  };
  int64_t most = of(joined.wide);
  if (joined.rest_rows > 0) most = std::max(most, fold.states() * kBytes + of(joined.rest));
  return joined.wide.states() * kBytes + most;
}

void wide_sum_cuda(const char* who, const Reduction& reduction, const FoldInput& input,
                   const Tensor& x, const std::vector<int>& axes, const Tensor& result) {
  const int64_t multiprocessors = multiprocessors_of(x.device());
  const DType dtype = result.dtype();
  for_fold_parts(who, input, x, axes, result,
                 [&](const FoldPlan& fold, const Tensor& part, const Tensor& to) {
                   WideSumPlan plan = plan_wide_sum(fold, &dtype, multiprocessors);
                   if (reduction.kind == ReduceKind::kMean) {
                     plan.arguments.divisor = static_cast<uint64_t>(fold.length());
                   }
                   run(fold, plan, part, to.data());
                 });
}

}  // namespace cuop::kernels
