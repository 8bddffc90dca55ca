#include "cuop/ops/reduce/partial.h"

#include <algorithm>

#include "cuop/backend/slot.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"
#include "cuop/ops/reduce/reduce.h"
#include "cuop/ops/reduce/reduce_kernels.h"
#include "cuop/ops/work_figures.h"

namespace cuop {

namespace {

constexpr backend::Slot kFold{"partial reduction", &kernels::reduce_states_cpu,
                              &kernels::reduce_states_cuda};
constexpr backend::Slot kMerge{"partial reduction", &kernels::merge_states_cpu,
                               &kernels::merge_states_cuda};
constexpr backend::Slot kFinish{"partial reduction", &kernels::finish_states_cpu,
                                &kernels::finish_states_cuda};

bool is_by_parts(ReduceKind kind, DType dtype) {
  return is_complex(dtype) && (kind == ReduceKind::kSum || kind == ReduceKind::kMean ||
                               kind == ReduceKind::kVar || kind == ReduceKind::kStd);
}

/// Whether states of so many bytes lie where their numbers may.
bool is_aligned(const Tensor& states, int64_t bytes) {
  constexpr int64_t kWidest = 16;
  const int64_t step = std::min(bytes & -bytes, kWidest);
  return reinterpret_cast<uintptr_t>(states.data()) % static_cast<uintptr_t>(step) == 0;
}

/// What the states of this reduction are folded from: complex sums are two real ones side by side.
FoldInput input_of(ReduceKind kind, SumMode mode, DType dtype) {
  return fold_input({kind, mode}, is_by_parts(kind, dtype) ? real_dtype(dtype) : dtype);
}

}  // namespace

PartialReduction::PartialReduction(ReduceKind kind, SumMode mode, DType dtype, double correction)
    : kind_(kind),
      mode_(mode),
      dtype_(dtype),
      result_(cuop::result_dtype(who(), {kind, mode}, dtype)),
      correction_(correction) {
  if (kind == ReduceKind::kNorm) {
    throw ExecutionError("norm: there is no partial form; add up the powers instead");
  }
  const FoldInput input = input_of(kind, mode, dtype);
  state_bytes_ =
      fold_cpu(input.kind, input.element).state_bytes * (is_by_parts(kind, dtype) ? 2 : 1);
}

Tensor PartialReduction::fold(const Tensor& x, Axes axes) const {
  if (axes.are_none()) return fold(with_own_axis(who(), x), {-1});
  if (x.dtype() != dtype_) {
    throw DTypeError(
        cat(who(), ": the elements have dtype ", x.dtype(), ", announced was ", dtype_));
  }
  const std::vector<int> reduced = normalize_axes(axes, x.ndim(), who());
  Shape shape;
  for (int axis = 0, next = 0; axis < x.ndim(); ++axis) {
    if (static_cast<size_t>(next) < reduced.size() && reduced[static_cast<size_t>(next)] == axis) {
      ++next;
    } else {
      shape.push_back(x.shape(axis));
    }
  }
  shape.push_back(state_bytes_);
  const Tensor states = empty(shape, DType::kUInt8, x.device());
  if (states.size() == 0) return states;
  const Tensor elements = is_by_parts(kind_, dtype_) ? as_real(x) : x;
  kFold(x.device(), who(), input_of(kind_, mode_, dtype_), elements, reduced, states);
  return states;
}

int64_t PartialReduction::fold_bytes(const Shape& x, Axes axes, const WorkFigures& figures) const {
  if (axes.are_none()) {
    Shape elements = x;
    elements.push_back(1);
    return fold_bytes(elements, {-1}, figures);
  }
  const std::vector<int> reduced = normalize_axes(axes, x.ndim(), who());
  Tensor elements(nullptr, contiguous_layout(x), dtype_);  // without memory
  if (is_by_parts(kind_, dtype_)) elements = as_real(elements);
  const FoldInput input = input_of(kind_, mode_, dtype_);
  if (elements.size() == 0) return 0;
  return figures.is_gpu()
             ? kernels::fold_bytes_cuda(who(), input, elements, reduced, figures.multiprocessors)
             : kernels::fold_bytes_cpu(input, elements, reduced);
}

int64_t PartialReduction::finish_bytes(int64_t states) const {
  // A copy of the states and what they are worth in float64, or as exact integers.
  constexpr int64_t kValue = 8;
  const int64_t numbers = is_by_parts(kind_, dtype_) ? 2 : 1;
  return states * (state_bytes_ + numbers * kValue);
}

Tensor PartialReduction::reduce(const Tensor& x, Axes axes, bool keepdims) const {
  return cuop::reduce(who(), {kind_, mode_, correction_}, x, axes, keepdims, nullptr);
}

void PartialReduction::check_states(const Tensor& states) const {
  const bool fits = states.dtype() == DType::kUInt8 && states.ndim() > 0 &&
                    states.shape().back() == state_bytes_ && states.is_contiguous();
  if (!fits) {
    throw ShapeError(cat(who(), ": partial results are contiguous uint8 with ", state_bytes_,
                         " bytes along the last axis; given are ", states.dtype(), " ",
                         states.shape()));
  }
}

void PartialReduction::merge(const Tensor& into, const Tensor& from) const {
  check_states(into);
  check_states(from);
  if (!(into.shape() == from.shape())) {
    throw ShapeError(cat(who(), ": partial results of shapes ", into.shape(), " and ", from.shape(),
                         " cannot be merged"));
  }
  const Device device = common_device(who(), {&into, &from});
  check_writable(who(), into);
  if (into.size() == 0) return;
  if (!is_aligned(into, state_bytes_)) {
    throw ExecutionError(
        cat(who(), ": partial results to merge into must begin at a multiple of their numbers' ",
            "size in memory; given is a view at byte ", into.layout().offset));
  }
  kMerge(device, input_of(kind_, mode_, dtype_), into,
         is_aligned(from, state_bytes_) ? from : clone(from));
}

Tensor PartialReduction::finish(const Tensor& states, int64_t count, const Tensor* out) const {
  check_states(states);
  const Shape shape = remove_axis(states.layout(), states.ndim() - 1).shape;
  const Tensor result = prepare_output(who(), out, shape, result_, states.device());
  const Reduction reduction{kind_, mode_, correction_};
  if (count == 0) {
    fill_empty(who(), reduction, result);
    return result;
  }
  if (result.size() == 0) return result;
  if (is_by_parts(kind_, dtype_) && !is_complex(result_)) {
    // The variances of the two parts add up.
    const Reduction variance{ReduceKind::kVar, mode_, correction_};
    Shape parts = shape;
    parts.push_back(2);
    const Tensor both =
        kFinish(states.device(), variance, input_of(ReduceKind::kVar, mode_, dtype_), states, count,
                DType::kFloat64);
    const Tensor total = sum(reshape(both, parts), {int64_t{-1}});
    copy_into(result, kind_ == ReduceKind::kStd ? sqrt(total) : total);
    return result;
  }
  const Tensor values =
      kFinish(states.device(), reduction, input_of(kind_, mode_, dtype_), states, count, result_);
  const bool is_parts = is_by_parts(kind_, dtype_);
  const Tensor target = is_parts ? as_real(result) : result;
  copy_into(target, reshape(values, target.shape()));
  return result;
}

Tensor PartialReduction::finish(Tensor&& states, int64_t count) const {
  if (is_by_parts(kind_, dtype_) || count == 0 || states.size() == 0) return finish(states, count);
  check_states(states);
  const Shape shape = remove_axis(states.layout(), states.ndim() - 1).shape;
  const Tensor values = reshape(kFinish(states.device(), Reduction{kind_, mode_, correction_},
                                        input_of(kind_, mode_, dtype_), states, count, result_),
                                shape);
  if (values.dtype() == result_) return values;
  const Tensor result = empty(shape, result_, values.device());
  copy_into(result, values);
  return result;
}

}  // namespace cuop
