// Reductions on a GPU, as expressions with reductions of the trailing axes.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "cuop/jit/cuda/row_plan.h"
#include "cuop/jit/tensor_expr.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/reduce/reduce_kernels.h"

namespace cuop::kernels {

namespace {

/// x with the reduced axes last, and their number.
struct Arranged {
  Tensor x;
  int reduced = 0;
  std::vector<int64_t> order;

  Arranged(const Tensor& given, const std::vector<int>& axes)
      : reduced(static_cast<int>(axes.size())) {
    for (int i = 0; i < given.ndim(); ++i) {
      if (!std::binary_search(axes.begin(), axes.end(), i)) order.push_back(i);
    }
    order.insert(order.end(), axes.begin(), axes.end());
    x = rearranged(given);
  }
  /// Elements of each reduction.
  int64_t count() const {
    int64_t result = 1;
    for (int i = x.ndim() - reduced; i < x.ndim(); ++i) result *= x.shape(i);
    return result;
  }
  /// A tensor with axes as the given one, in the same order.
  Tensor rearranged(const Tensor& tensor) const {
    return tensor.with_layout(permute(tensor.layout(), order));
  }
};

/// One pass: elements converted to `dtype` and folded.
void fold(ReduceKind kind, const Arranged& in, DType dtype, const Tensor& result) {
  jit::TensorExpr expr;
  const int element = expr.cast(expr.leaf(in.x), dtype);
  expr.reduce(kind, element, in.x.shape(), in.reduced, result);
}

Tensor scratch_like(const Tensor& result, DType dtype) {
  return empty(result.shape(), dtype, result.device());
}

/// The fields of moments (jit/kernels/moments.h).
void moments(const Arranged& in, const Tensor& center, const Tensor& sum, const Tensor& squares) {
  jit::TensorExpr expr;
  const int x = expr.cast(expr.leaf(in.x), DType::kFloat64);
  expr.add_reduction(ReduceKind::kMoments, x, center, jit::MomentsPart::kCenter);
  expr.add_reduction(ReduceKind::kMoments, x, sum, jit::MomentsPart::kSum);
  expr.add_reduction(ReduceKind::kMoments, x, squares, jit::MomentsPart::kSquares);
  expr.run(in.x.shape(), in.reduced);
}

void variance(const Reduction& reduction, const Arranged& in, const Tensor& result) {
  const DType wide = is_complex(in.x.dtype()) ? DType::kComplex128 : DType::kFloat64;
  const Tensor squares = scratch_like(result, DType::kFloat64);
  fold(ReduceKind::kMoments, in, wide, squares);
  jit::TensorExpr expr;
  const double divisor = std::max(0.0, static_cast<double>(in.count()) - reduction.parameter);
  const int total = expr.leaf(squares);
  const int quotient = expr.op("divide", {total, expr.number(divisor, DType::kFloat64)});
  const bool is_std = reduction.kind == ReduceKind::kStd;
  expr.write(is_std ? expr.op("sqrt", {quotient}) : quotient, result);
}

/// What the magnitudes are divided by before they are squared: the largest, so that no square
/// overflows or vanishes; 1 where it is 0 or not finite.
Tensor norm_scale(const Arranged& in, const Tensor& result) {
  const Tensor largest = scratch_like(result, DType::kFloat64);
  {
    jit::TensorExpr expr;
    int size = expr.leaf(in.x);
    if (!is_complex(in.x.dtype())) size = expr.cast(size, DType::kFloat64);
    size = expr.op("abs", {size});
    expr.reduce(ReduceKind::kMax, size, in.x.shape(), in.reduced, largest);
  }
  jit::TensorExpr expr;
  const int m = expr.leaf(largest), one = expr.number(1.0, DType::kFloat64);
  const int is_usable = expr.op("logical_and", {expr.op("isfinite", {m}), m});
  expr.write(expr.op("where", {is_usable, m, one}), largest);
  return largest;
}

void norm(double order, const Arranged& in, const Tensor& result) {
  const bool is_double = result.dtype() == DType::kFloat64;
  const Tensor scale = order == 2.0 && is_double ? norm_scale(in, result) : Tensor();
  const Tensor folded = scratch_like(result, DType::kFloat64);
  {
    jit::TensorExpr expr;
    int size = expr.leaf(in.x);
    // Integers as float64 first: the smallest one has no magnitude of its own type.
    if (!is_complex(in.x.dtype())) size = expr.cast(size, DType::kFloat64);
    size = expr.cast(expr.op("abs", {size}), DType::kFloat64);
    ReduceKind kind = ReduceKind::kSum;
    if (std::isinf(order)) {
      kind = order > 0 ? ReduceKind::kMax : ReduceKind::kMin;
    } else if (order == 0.0) {
      size = expr.cast(expr.cast(size, DType::kBool), DType::kFloat64);
    } else if (order == 2.0) {
      if (scale.is_defined()) size = expr.op("divide", {size, expr.leaf(scale)});
      size = expr.op("square", {size});
    } else if (order != 1.0) {
      size = expr.op("pow", {size, expr.number(order, DType::kFloat64)});
    }
    expr.reduce(kind, size, in.x.shape(), in.reduced, folded);
  }
  jit::TensorExpr expr;
  int total = expr.leaf(folded);
  if (order == 2.0) {
    total = expr.op("sqrt", {total});
    if (scale.is_defined()) total = expr.op("multiply", {total, expr.leaf(scale)});
  } else if (order != 0.0 && order != 1.0 && !std::isinf(order)) {
    total = expr.op("pow", {total, expr.number(1.0 / order, DType::kFloat64)});
  }
  expr.write(total, result);
}

/// Exact sums of integers, made numbers by the CPU, which refuses those that do not fit.
void exact_integers(const char* who, const Reduction& reduction, const Tensor& x,
                    const std::vector<int>& axes, const Tensor& result) {
  const FoldInput input = fold_input(reduction, x.dtype());
  for_fold_parts(
      who, input, x, axes, result, [&](const FoldPlan& plan, const Tensor& part, const Tensor& to) {
        const Tensor states =
            empty({plan.states() * plan.fold->state_bytes}, DType::kUInt8, x.device());
        wide_states_cuda(who, input, part, axes, states);
        const Tensor sums =
            finish_states(reduction, input, to_device(states, kCpu), plan.length(), to.dtype());
        copy_across(to, reshape(sums, to.shape()));
      });
}

}  // namespace

void reduce_cuda(const char* who, const Reduction& reduction, const Tensor& x,
                 const std::vector<int>& axes, const Tensor& given) {
  const DType own = given.dtype();
  if (reduction.mode == SumMode::kExact && is_integer(own)) {
    return exact_integers(who, reduction, x, axes, given);
  }
  if (reduction.mode != SumMode::kPlain && !is_integer(own)) {
    const FoldInput input = fold_input(reduction, real_dtype(x.dtype()));
    return is_complex(own) ? wide_sum_cuda(who, reduction, input, as_real(x), axes, as_real(given))
                           : wide_sum_cuda(who, reduction, input, x, axes, given);
  }
  const Arranged in(x, axes);
  const Tensor result = in.rearranged(given);
  const DType dtype = result.dtype();
  switch (reduction.kind) {
    case ReduceKind::kAny:
      return fold(ReduceKind::kMax, in, DType::kBool, result);
    case ReduceKind::kAll:
      return fold(ReduceKind::kMin, in, DType::kBool, result);
    case ReduceKind::kVar:
    case ReduceKind::kStd:
      return variance(reduction, in, result);
    case ReduceKind::kNorm:
      return norm(reduction.parameter, in, result);
    default:
      return fold(reduction.kind, in, dtype, result);
  }
}

namespace {

/// The fold over no element, made by the CPU.
void fill_identity(const FoldInput& input, const Tensor& states) {
  const Fold& fold_of = fold_cpu(input.kind, input.element);
  const Tensor one = empty({fold_of.state_bytes}, DType::kUInt8);
  fold_of.init(one.data(), 1);
  const Shape rows{states.nbytes() / fold_of.state_bytes, fold_of.state_bytes};
  copy_across(states.with_layout(contiguous_layout(rows)), one);
}

}  // namespace

void reduce_states_cuda(const char* who, const FoldInput& input, const Tensor& x,
                        const std::vector<int>& axes, const Tensor& states) {
  if (x.size() == 0) return fill_identity(input, states);
  if (input.kind == ReduceKind::kCompensatedSum || input.kind == ReduceKind::kExactSum) {
    return wide_states_cuda(who, input, x, axes, states);
  }
  const Arranged in(x, axes);
  Shape shape = x.shape();
  for (const int axis : axes) shape[axis] = 1;
  if (input.kind == ReduceKind::kMoments) {
    Layout part = contiguous_layout(shape);
    constexpr int64_t kFields = sizeof(Moments) / 8;
    for (int64_t& stride : part.strides) stride *= kFields;
    const auto field = [&](int64_t place, DType dtype) {
      part.offset = place;
      return in.rearranged(Tensor(states.storage(), part, dtype));
    };
    fill(field(3, DType::kInt64), in.count());
    return moments(in, field(0, DType::kFloat64), field(1, DType::kFloat64),
                   field(2, DType::kFloat64));
  }
  const DType dtype = input.map == LoadMap::kNonzero ? DType::kBool : input.element;
  fold(input.kind, in, dtype,
       in.rearranged(Tensor(states.storage(), contiguous_layout(shape), dtype)));
}

int64_t fold_bytes_cuda(const char* who, const FoldInput& input, const Tensor& x,
                        const std::vector<int>& axes, int64_t multiprocessors) {
  if (input.kind == ReduceKind::kCompensatedSum || input.kind == ReduceKind::kExactSum) {
    return wide_bytes_cuda(who, input, x, axes, multiprocessors);
  }
  const Arranged in(x, axes);
  const int64_t elements = in.count(), kept = x.size() / elements;
  // While it is made a result is float64, two of these or moments.
  constexpr int64_t kNumber = sizeof(double);
  const int64_t state = input.kind == ReduceKind::kMoments ? int64_t{sizeof(Moments)}
                        : is_complex(input.element)        ? 2 * kNumber
                                                           : kNumber;
  return jit::most_partial_bytes(kept, elements, state, multiprocessors);
}

void arg_reduce_cuda(const Tensor& x, int axis, bool is_max, const Tensor& result) {
  const Arranged in(x, {axis});
  fold(is_max ? ReduceKind::kArgMax : ReduceKind::kArgMin, in, x.dtype(), in.rearranged(result));
}

}  // namespace cuop::kernels
