#include "cuop/ops/reduce/fold_plan.h"

#include <algorithm>
#include <cstdlib>

#include "cuop/backend/cpu/isa.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

const Fold& fold_cpu(ReduceKind kind, DType element) {
  const Fold* fold = isa::choose([&]<class Level>(Level) {
    switch (kind) {
      case ReduceKind::kCompensatedSum:
        return compensated_fold<Level>(element);
      case ReduceKind::kExactSum:
        return exact_fold<Level>(element);
      case ReduceKind::kMoments:
        return moments_fold<Level>(element);
      default:
        return simple_fold<Level>(kind, element);
    }
  });
  if (fold == nullptr) throw NotImplementedError(cat("fold: no kernel for elements of ", element));
  return *fold;
}

LoadFunction load_cpu(LoadMap map, DType source, DType element) {
  return isa::choose(
      [&]<class Level>(Level) { return load_function<Level>(map, source, element); });
}

namespace {

/// The fold that squares what it reads, which saves writing squares; null where there is none.
const Fold* fold_of_squares(const FoldInput& input, DType source) {
  if (input.kind != ReduceKind::kSum || input.map != LoadMap::kSquare) return nullptr;
  return isa::choose([&]<class Level>(Level) { return square_fold<Level>(source); });
}

}  // namespace

FoldPlan plan_fold(const char* who, const FoldInput& input, const Tensor& x, const Layout& result,
                   const std::vector<int>& axes) {
  FoldPlan plan;
  plan.input = input;
  plan.source = x.dtype();
  const Fold* const squares = fold_of_squares(input, x.dtype());
  plan.fold = squares != nullptr ? squares : &fold_cpu(input.kind, input.element);
  plan.element = squares != nullptr ? x.dtype() : input.element;
  const LoadMap map = squares != nullptr ? LoadMap::kValue : input.map;
  plan.load = load_cpu(map, x.dtype(), plan.element);
  if (plan.load == nullptr) throw DTypeError(cat(who, ": dtype ", x.dtype(), " is not supported"));
  Shape kept_shape = x.shape(), reduced_shape = Dims::filled(x.ndim(), 1);
  for (const int axis : axes) {
    reduced_shape[axis] = x.shape(axis);
    kept_shape[axis] = 1;
  }
  plan.kept = make_loop_nest<2>(kept_shape, {&x.strides(), &result.strides});
  plan.reduced = make_loop_nest<1>(reduced_shape, {&x.strides()});
  const int64_t kept_stride = std::abs(plan.kept.inner().strides[0]);
  const int64_t reduced_stride = std::abs(plan.reduced.inner().strides[0]);
  plan.by_columns = plan.kept.inner().size > 1 && plan.reduced.inner().size > 1 &&
                    kept_stride < reduced_stride && kept_stride != 0;
  const bool is_same =
      x.dtype() == plan.element || (x.dtype() == DType::kBool && plan.element == DType::kUInt8);
  const int64_t inner_stride =
      plan.by_columns ? plan.kept.inner().strides[0] : plan.reduced.inner().strides[0];
  const bool is_as_it_lies = map == LoadMap::kValue || is_bool(x.dtype());
  plan.is_direct = is_same && is_as_it_lies && input.transform == nullptr &&
                   (inner_stride == 1 || plan.reduced.inner().size == 1);
  return plan;
}

namespace {

/// How many neighbouring rows make one wide row; 1 where they stay alone.
int64_t rows_to_join(const FoldPlan& plan) {
  constexpr int64_t kWide = 64;
  const auto& columns = plan.kept.inner();
  const auto& rows = plan.reduced.inner();
  if (columns.size >= kWide / 2 || rows.strides[0] != columns.size * columns.strides[0]) return 1;
  const int64_t join = divide_up(kWide, columns.size);
  return rows.size >= 4 * join ? join : 1;
}

constexpr int64_t kMaxStateBytes = int64_t{1} << 26;

}  // namespace

JoinedFold join_rows(const FoldPlan& plan) {
  JoinedFold joined{rows_to_join(plan), plan, plan};
  if (joined.join == 1) return joined;
  auto& columns = joined.wide.kept.axes[static_cast<size_t>(plan.kept.count - 1)];
  auto& rows = joined.wide.reduced.axes[static_cast<size_t>(plan.reduced.count - 1)];
  auto& last = joined.rest.reduced.axes[static_cast<size_t>(plan.reduced.count - 1)];
  joined.rest_rows = rows.size % joined.join;
  joined.rest_offset = (rows.size - joined.rest_rows) * rows.strides[0];
  last.size = joined.rest_rows;
  columns.size *= joined.join;
  rows.size /= joined.join;
  rows.strides[0] *= joined.join;
  return joined;
}

void for_fold_parts(const char* who, const FoldInput& input, const Tensor& x,
                    const std::vector<int>& axes, const Tensor& result, const RunFold& run) {
  const FoldPlan plan = plan_fold(who, input, x, result.layout(), axes);
  if (plan.states() * plan.fold->state_bytes <= kMaxStateBytes || plan.states() == 1) {
    return run(plan, x, result);
  }
  int longest = 0;
  for (int i = 1; i < result.ndim(); ++i) {
    if (result.shape(i) > result.shape(longest)) longest = i;
  }
  const int64_t first = x.shape(longest) / 2;
  for (const auto& [start, length] :
       {std::pair{int64_t{0}, first}, std::pair{first, x.shape(longest) - first}}) {
    const auto half = [&, start = start, length = length](const Tensor& whole) {
      return whole.with_layout(slice(whole.layout(), longest, start, length, 1));
    };
    for_fold_parts(who, input, half(x), axes, half(result), run);
  }
}

}  // namespace cuop
