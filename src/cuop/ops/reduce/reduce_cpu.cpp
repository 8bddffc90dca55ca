#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/long_loop.h"
#include "cuop/ops/arithmetic.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/reduce/reduce_kernels.h"

namespace cuop::kernels {

namespace {

const std::byte* bytes_of(const Tensor& x) { return static_cast<const std::byte*>(x.data()); }

/// The elements of `result` in the order in which the plan numbers its states.
Tensor in_plan_order(const FoldPlan& plan, const Tensor& result) {
  Layout layout{{}, {}, result.layout().offset};
  for (int i = 0; i < plan.kept.count; ++i) {
    const auto& axis = plan.kept.axes[static_cast<size_t>(i)];
    layout.shape.push_back(axis.size);
    layout.strides.push_back(axis.strides[1]);
  }
  return result.with_layout(layout);
}

void reduce_part(const Reduction& reduction, const FoldPlan& plan, const Tensor& x,
                 const Tensor& result, DType round) {
  const FoldInput& input = plan.input;
  const Tensor ordered = in_plan_order(plan, result);
  const bool is_value = input.kind == ReduceKind::kSum || input.kind == ReduceKind::kProd ||
                        input.kind == ReduceKind::kMax || input.kind == ReduceKind::kMin;
  const bool is_in_place = is_value && result.dtype() == input.element && ordered.is_contiguous() &&
                           reduction.kind != ReduceKind::kNorm;
  const Tensor states = is_in_place
                            ? result.with_layout({{plan.states()}, {1}, result.layout().offset})
                            : empty({plan.states() * plan.fold->state_bytes}, DType::kUInt8);
  run_fold(plan, bytes_of(x), static_cast<std::byte*>(states.data()));
  const Tensor values = finish_states(reduction, input, states, plan.length(), round);
  if (!is_in_place) copy_into(ordered, reshape(values, ordered.shape()));
}

void reduce_real(const char* who, const Reduction& reduction, const FoldInput& input,
                 const Tensor& x, const std::vector<int>& axes, const Tensor& result, DType round) {
  for_fold_parts(who, input, x, axes, result,
                 [&](const FoldPlan& plan, const Tensor& part, const Tensor& to) {
                   reduce_part(reduction, plan, part, to, round);
                 });
}

bool is_suspect(double norm) { return norm <= 0x1p-480 || (norm > 0x1p511 && !std::isnan(norm)); }

/// Euclid's norm of float64: where the sum of squares over- or underflowed, once more with the
/// elements scaled by a power of two that brings the largest magnitude near 1.
void repair_norms(const Reduction& reduction, const Tensor& x, const std::vector<int>& axes,
                  const Tensor& result) {
  const Tensor norms = contiguous(result);
  const double* norm = norms.data<double>();
  if (std::none_of(norm, norm + norms.size(), is_suspect)) return;
  const Reduction largest{ReduceKind::kNorm, SumMode::kPlain, HUGE_VAL};
  const Tensor magnitudes = empty(result.shape(), DType::kFloat64);
  reduce_real("norm", largest, fold_input(largest, x.dtype()), x, axes, magnitudes,
              DType::kFloat64);
  for (int64_t i = 0; i < norms.size(); ++i) {
    const double magnitude = magnitudes.data<double>()[i];
    if (!is_suspect(norm[i]) || magnitude == 0.0 || !std::isfinite(magnitude)) continue;
    Layout from = x.layout(), to = result.layout();
    int64_t rest = i;
    for (int axis = result.ndim() - 1; axis >= 0; --axis) {
      const int64_t size = result.shape(axis), index = rest % size;
      rest /= size;
      to = slice(to, axis, index, 1, 1);
      const bool is_kept = !std::binary_search(axes.begin(), axes.end(), axis);
      if (is_kept) from = slice(from, axis, index, 1, 1);
    }
    const double scale = std::ldexp(1.0, -std::clamp(std::ilogb(magnitude), -1000, 1000));
    const Tensor one = result.with_layout(to);
    reduce_real("norm", reduction, scaled_squares(scale), x.with_layout(from), axes, one,
                DType::kFloat64);
    *one.data<double>() /= scale;
  }
}

/// Sums of complex numbers are those of their parts, but of rows, which lie one after the other.
void sum_complex(const char* who, const Reduction& reduction, const Tensor& x,
                 const std::vector<int>& axes, const Tensor& result) {
  const DType round = result.dtype();
  const auto sum_parts = [&](const Tensor& from, const Tensor& to) {
    const FoldInput input = fold_input(reduction, real_dtype(x.dtype()));
    reduce_real(who, reduction, input, as_real(from), axes, as_real(to), round);
  };
  const FoldInput whole = fold_input(reduction, x.dtype());
  if (whole.kind != ReduceKind::kSum) return sum_parts(x, result);
  for_fold_parts(who, whole, x, axes, result,
                 [&](const FoldPlan& plan, const Tensor& from, const Tensor& to) {
                   if (plan.by_columns) return sum_parts(from, to);
                   reduce_part(reduction, plan, from, to, round);
                 });
}

using SumTypes = Joined<TypeList<int64_t, uint64_t>, FloatComplexTypes>;
constexpr int64_t kTileColumns = 256;

/// Running sums of `width` neighbouring lines in place.
template <class T>
void scan(T* line, int64_t step, int64_t width, int64_t stride, int64_t length) {
  if (width == 1) {
    T total = line[0];
    in_pieces(length - 1, [&](int64_t begin, int64_t end) {
      T sum = total;  // in a register
      for (int64_t i = begin + 1; i <= end; ++i) {
        sum += line[i * stride];
        line[i * stride] = sum;
      }
      total = sum;
    });
    return;
  }
  const auto add_rows = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin + 1; i <= end; ++i) {
      T* row = line + i * stride;
      for (int64_t j = 0; j < width; ++j) row[j * step] = row[j * step - stride] + row[j * step];
    }
  };
  in_pieces(length - 1, add_rows, std::max<int64_t>(1, kLoopPiece / width));
}

}  // namespace

void reduce_cpu(const char* who, const Reduction& reduction, const Tensor& x,
                const std::vector<int>& axes, const Tensor& result) {
  const bool is_sum = reduction.kind == ReduceKind::kSum || reduction.kind == ReduceKind::kMean;
  if (is_complex(x.dtype()) && is_sum) return sum_complex(who, reduction, x, axes, result);
  const FoldInput input = fold_input(reduction, real_dtype(x.dtype()));
  const bool is_euclid = reduction.kind == ReduceKind::kNorm && reduction.parameter == 2.0;
  if (is_complex(x.dtype()) && is_euclid) {
    std::vector<int> all_parts = axes;
    all_parts.push_back(x.ndim());
    return reduce_cpu(who, reduction, as_real(x), all_parts,
                      result.with_layout(insert_axis(result.layout(), result.ndim())));
  }
  if (is_complex(x.dtype()) && input.kind == ReduceKind::kMoments) {
    // The variances of the two parts add up.
    Shape shape = result.shape();
    shape.push_back(2);
    const Tensor parts = empty(shape, DType::kFloat64);
    const Reduction variance{ReduceKind::kVar, reduction.mode, reduction.parameter};
    reduce_real(who, variance, input, as_real(x), axes, parts, DType::kFloat64);
    auto* part = parts.data<double>();
    for (int64_t i = 0; i < result.size(); ++i) {
      const double total = part[2 * i] + part[2 * i + 1];
      part[i] = reduction.kind == ReduceKind::kStd ? std::sqrt(total) : total;
    }
    return copy_into(result, parts.with_layout(contiguous_layout(result.shape())));
  }
  const FoldInput own = is_complex(x.dtype()) ? fold_input(reduction, x.dtype()) : input;
  reduce_real(who, reduction, own, x, axes, result, result.dtype());
  if (is_euclid && result.dtype() == DType::kFloat64) repair_norms(reduction, x, axes, result);
}

void reduce_states_cpu(const char* who, const FoldInput& input, const Tensor& x,
                       const std::vector<int>& axes, const Tensor& states) {
  Shape shape = x.shape();
  for (const int axis : axes) shape[axis] = 1;
  const FoldPlan plan = plan_fold(who, input, x, contiguous_layout(shape), axes);
  const int64_t bytes = plan.fold->state_bytes;
  const Tensor folded = empty({plan.states() * bytes}, DType::kUInt8);
  auto* from = static_cast<std::byte*>(folded.data());
  auto* to = static_cast<std::byte*>(states.data());
  run_fold(plan, bytes_of(x), from);
  for (int64_t i = 0; i < plan.states(); ++i) {
    std::memcpy(to + plan.kept.offsets(i)[1] * bytes, from + i * bytes, static_cast<size_t>(bytes));
  }
}

int64_t fold_bytes_cpu(const FoldInput& input, const Tensor& x, const std::vector<int>& axes) {
  int64_t states = 1;
  for (int axis = 0; axis < x.ndim(); ++axis) {
    if (!std::binary_search(axes.begin(), axes.end(), axis)) states *= x.shape(axis);
  }
  return states * fold_cpu(input.kind, input.element).state_bytes;
}

void merge_states_cpu(const FoldInput& input, const Tensor& into, const Tensor& from) {
  const Fold& fold = fold_cpu(input.kind, input.element);
  fold.merge(into.data(), from.data(), into.nbytes() / fold.state_bytes);
}

Tensor finish_states_cpu(const Reduction& reduction, const FoldInput& input, const Tensor& states,
                         int64_t count, DType result) {
  return finish_states(reduction, input, clone(states), count, result);  // divides means in place
}

void cumsum_cpu(const Tensor& x, int axis, const Tensor& result) {
  if (compute_dtype(result.dtype()) != result.dtype()) {
    const Tensor wide = cast(x, compute_dtype(result.dtype()));
    cumsum_cpu(wide, axis, wide);
    return copy_into(result, wide);
  }
  if (!is_same_view(result, x)) copy_into(result, x);
  Shape lines = result.shape();
  lines[axis] = 1;
  const LoopNest<1> nest = make_loop_nest<1>(lines, {&result.strides()});
  const auto& inner = nest.inner();
  const int64_t stride = result.strides()[axis], length = result.shape(axis);
  const int64_t tile = std::abs(inner.strides[0]) < std::abs(stride) ? kTileColumns : 1;
  const int64_t tiles = divide_up(inner.size, tile);
  visit_dtype(SumTypes{}, result.dtype(), "cumsum", [&]<class T>(TypeTag<T>) {
    auto* data = reinterpret_cast<Wrapping<T>*>(result.data<T>());
    backend::parallel_for_each(
        nest.outer_size() * tiles, (1 << 15) / (length * tile), [&](int64_t task) {
          const auto [row, tile_of_row] = divided(task, tiles);
          const int64_t first = tile_of_row * tile;
          scan(data + nest.row_offsets(row)[0] + first * inner.strides[0], inner.strides[0],
               std::min(tile, inner.size - first), stride, length);
        });
  });
}

}  // namespace cuop::kernels
