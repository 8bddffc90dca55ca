#include "cuop/ops/reduce/partial.h"

#include "cuop/backend/slot.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"
#include "cuop/ops/reduce/reduce_kernels.h"

namespace cuop {

namespace {

constexpr backend::Slot<void(const char*, const FoldInput&, const Tensor&, const std::vector<int>&,
                             std::byte*)>
    kFoldSlot{"partial reduction", kernels::reduce_states_cpu};

bool is_by_parts(ReduceKind kind, DType dtype) {
  return is_complex(dtype) && (kind == ReduceKind::kSum || kind == ReduceKind::kMean);
}

/// What the states of this reduction are folded from: complex sums are two real ones side by side.
FoldInput input_of(ReduceKind kind, SumMode mode, DType dtype) {
  return fold_input({kind, mode}, is_by_parts(kind, dtype) ? real_dtype(dtype) : dtype);
}

}  // namespace

PartialReduction::PartialReduction(ReduceKind kind, SumMode mode, DType dtype)
    : kind_(kind),
      mode_(mode),
      dtype_(dtype),
      result_(cuop::result_dtype(who(), {kind, mode}, dtype)) {
  if (kind == ReduceKind::kNorm) {
    throw ExecutionError("norm: there is no partial form; add up the powers instead");
  }
  if ((kind == ReduceKind::kVar || kind == ReduceKind::kStd) && is_complex(dtype)) {
    throw DTypeError(
        cat(who(), ": dtype ", dtype, " has no partial form; supported are real ones"));
  }
  const FoldInput input = input_of(kind, mode, dtype);
  state_bytes_ =
      fold_cpu(input.kind, input.element).state_bytes * (is_by_parts(kind, dtype) ? 2 : 1);
}

Tensor PartialReduction::fold(const Tensor& x, Axes axes) const {
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
  kFoldSlot(x.device(), who(), input_of(kind_, mode_, dtype_), elements, reduced,
            static_cast<std::byte*>(states.data()));
  return states;
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
  check_writable(who(), into);
  const FoldInput input = input_of(kind_, mode_, dtype_);
  const Fold& fold = fold_cpu(input.kind, input.element);
  fold.merge(into.data(), from.data(), into.size() / fold.state_bytes);
}

Tensor PartialReduction::finish(const Tensor& states, int64_t count, const Tensor* out) const {
  check_states(states);
  const Shape shape = remove_axis(states.layout(), states.ndim() - 1).shape;
  const Tensor result = prepare_output(who(), out, shape, result_, states.device());
  const Reduction reduction{kind_, mode_};
  if (count == 0) {
    fill_empty(who(), reduction, result);
    return result;
  }
  // A copy, because a mean is divided in place.
  const Tensor values =
      finish_states(reduction, input_of(kind_, mode_, dtype_), clone(states), count, result_);
  const bool is_parts = is_by_parts(kind_, dtype_);
  const Tensor target = is_parts ? as_real(result) : result;
  copy_into(target, values.with_layout(contiguous_layout(target.shape())));
  return result;
}

}  // namespace cuop
