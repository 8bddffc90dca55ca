#include "cuop/ops/reduce/fold_plan.h"

#include <algorithm>
#include <cstdlib>

#include "cuop/backend/cpu/isa.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

const Fold& fold_cpu(FoldKind kind, DType element) {
  const Fold* fold = isa::choose([&]<class Level>(Level) {
    switch (kind) {
      case FoldKind::kCompensated:
        return compensated_fold<Level>(element);
      case FoldKind::kExact:
        return exact_fold<Level>(element);
      case FoldKind::kMoments:
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

FoldPlan plan_fold(const char* who, const FoldInput& input, const Tensor& x, const Layout& result,
                   const std::vector<int>& axes) {
  FoldPlan plan;
  plan.input = input;
  plan.source = x.dtype();
  plan.fold = &fold_cpu(input.kind, input.element);
  plan.load = load_cpu(input.map, x.dtype(), input.element);
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
      x.dtype() == input.element || (x.dtype() == DType::kBool && input.element == DType::kUInt8);
  const int64_t inner_stride =
      plan.by_columns ? plan.kept.inner().strides[0] : plan.reduced.inner().strides[0];
  plan.is_direct = is_same && input.map == LoadMap::kValue && input.transform == nullptr &&
                   (inner_stride == 1 || plan.reduced.inner().size == 1);
  return plan;
}

}  // namespace cuop
