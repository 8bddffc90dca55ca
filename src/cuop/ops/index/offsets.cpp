#include <limits>
#include <string>

#include "cuop/backend/slot.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/index_kernels.h"
#include "cuop/ops/index/offsets_internal.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"

namespace cuop {

namespace {

constexpr backend::Slot kCountTrue{"mask", &kernels::count_true_cpu, &kernels::count_true_cuda};
constexpr backend::Slot kMaskOffsets{"mask", &kernels::mask_offsets_cpu,
                                     &kernels::mask_offsets_cuda};
constexpr backend::Slot kIndexOffsets{"index", &kernels::index_offsets_cpu,
                                      &kernels::index_offsets_cuda};
constexpr backend::Slot kAddOffsets{"index", &kernels::add_offsets_cpu, &kernels::add_offsets_cuda};
constexpr backend::Slot kGather{"gather", &kernels::gather_offsets_cpu,
                                &kernels::gather_offsets_cuda};
constexpr backend::Slot kScatter{"scatter", &kernels::scatter_offsets_cpu,
                                 &kernels::scatter_offsets_cuda};

/// The layout's axes from `at` on, `count` of them.
Layout axes_of(const Layout& layout, int at, int count) {
  Layout result;
  result.offset = layout.offset;
  for (int i = at; i < at + count; ++i) {
    result.shape.push_back(layout.shape[i]);
    result.strides.push_back(layout.strides[i]);
  }
  return result;
}

/// Integers as int64; those of uint64 that are larger become the largest one, which is outside of
/// every axis, where a conversion would make them negative and so valid.
Tensor as_int64(const Tensor& indices) {
  if (indices.dtype() != DType::kUInt64) return cast(indices, DType::kInt64);
  const Tensor largest =
      full({}, Scalar(std::numeric_limits<int64_t>::max()), DType::kUInt64, indices.device());
  return cast(minimum(indices, largest), DType::kInt64);
}

/// The element at a position in row-major order, as text.
std::string element_text(const Tensor& indices, int64_t position) {
  const Tensor list = contiguous(indices);
  const Tensor element =
      to_device(list.with_layout({{}, {}, list.layout().offset + position}), kCpu);
  return visit_dtype(IntegerTypes{}, element.dtype(), "index",
                     [&]<class T>(TypeTag<T>) { return std::to_string(*element.data<T>()); });
}

/// One stride for all picked axes of the dense side, when its layout allows that.
std::optional<int64_t> picked_stride(const Layout& dense, const Picks& picks) {
  const Layout picked = axes_of(dense, picks.at, picks.table.ndim());
  const auto merged = try_reshape(picked, {picks.table.size()});
  return merged ? std::optional(merged->strides[0]) : std::nullopt;
}

kernels::OffsetCopy describe(const Tensor& view, const Picks& picks, const Tensor& dense) {
  kernels::OffsetCopy copy;
  copy.device = view.device();
  copy.dense = dense.data();
  copy.sparse = view.data();
  copy.itemsize = itemsize(view.dtype());
  copy.offsets = picks.table.data<int64_t>();
  copy.count = picks.table.size();
  copy.dense_stride = *picked_stride(dense.layout(), picks);
  copy.rest = picks.rest.shape;
  copy.sparse_rest = picks.rest.strides;
  copy.dense_rest = dense.strides();
  for (int i = 0; i < picks.table.ndim(); ++i) copy.dense_rest.erase(picks.at);
  return copy;
}

}  // namespace

Offsets index_offsets(const char* who, const Tensor& view, int axis, const Tensor& indices) {
  common_device(who, {&view, &indices});
  const Tensor list = contiguous(as_int64(indices));
  Tensor table = empty(indices.shape(), DType::kInt64, view.device());
  const int64_t size = view.shape(axis);
  const int64_t bad =
      kIndexOffsets(view.device(), list, size, view.strides()[axis], table.data<int64_t>());
  if (bad >= 0) {
    throw IndexError(cat(who, ": ", element_text(indices, bad), " is out of range for axis ", axis,
                         " of size ", size));
  }
  return {table, list.size() <= 1};
}

Offsets all_offsets(const Tensor& view, int axis) {
  const int64_t size = view.shape(axis), stride = view.strides()[axis];
  if (stride == 0) return {zeros({size}, DType::kInt64, view.device()), size <= 1};
  return {arange(0, size * stride, stride, DType::kInt64, view.device()), true};
}

Offsets mask_offsets(const Tensor& view, int axis, const Tensor& mask,
                     std::optional<int64_t> known_count) {
  common_device("index", {&view, &mask});
  const Layout covered = axes_of(view.layout(), axis, mask.ndim());
  bool fits = true;
  for (int i = 0; i < mask.ndim(); ++i) {
    // As in NumPy an empty axis, which names nothing, goes with an axis of any size.
    fits = fits && (mask.shape(i) == 0 || mask.shape(i) == covered.shape[i]);
  }
  if (!fits) {
    throw IndexError(cat("index: a mask of shape ", mask.shape(), " does not fit axes of shape ",
                         covered.shape, " from axis ", axis, " on"));
  }
  const Tensor bits = contiguous(mask);
  const int64_t count = known_count ? *known_count : kCountTrue(view.device(), bits);
  Tensor table = empty({count}, DType::kInt64, view.device());
  if (count > 0) kMaskOffsets(view.device(), bits, covered.strides, table.data<int64_t>());
  return {table, !may_self_overlap(covered)};
}

int64_t count_true(const Tensor& mask) { return kCountTrue(mask.device(), contiguous(mask)); }

Picks combine_offsets(const Tensor& view, std::span<const Offsets> parts, std::span<const int> axes,
                      int first_axis) {
  Picks picks;
  picks.table = parts[0].table;
  picks.is_unique = parts.size() == 1 && parts[0].is_unique;
  if (parts.size() > 1) {
    Shape shape;
    try {
      for (const Offsets& part : parts) {
        shape = broadcast_shapes(shape, part.table.shape(), "index");
      }
    } catch (const ShapeError&) {
      std::vector<Shape> shapes;
      for (const Offsets& part : parts) shapes.push_back(part.table.shape());
      throw IndexError(cat("index: arrays of shapes ", join(shapes), " do not broadcast"));
    }
    picks.table = clone(broadcast_to(parts[0].table, shape));
    for (const Offsets& part : parts.subspan(1)) {
      kAddOffsets(view.device(), picks.table, broadcast_to(part.table, shape));
    }
  }
  picks.rest.offset = view.layout().offset;
  for (int i = 0; i < view.ndim(); ++i) {
    if (has_axis(axes, i)) continue;
    if (i < first_axis) ++picks.at;
    picks.rest.shape.push_back(view.shape(i));
    picks.rest.strides.push_back(view.strides()[i]);
  }
  for (int i = 0; i < picks.at; ++i) picks.result_shape.push_back(picks.rest.shape[i]);
  for (int64_t size : picks.table.shape()) picks.result_shape.push_back(size);
  for (int i = picks.at; i < picks.rest.ndim(); ++i) {
    picks.result_shape.push_back(picks.rest.shape[i]);
  }
  return picks;
}

Tensor gather_picks(const Tensor& view, const Picks& picks, const Tensor* out) {
  const bool is_direct = out != nullptr && picked_stride(out->layout(), picks).has_value();
  const Tensor dense = is_direct ? *out : empty(picks.result_shape, view.dtype(), view.device());
  if (dense.size() > 0) kGather(view.device(), describe(view, picks, dense));
  if (out == nullptr || is_direct) return dense;
  copy_into(*out, dense);
  return *out;
}

void scatter_picks(const Tensor& view, const Picks& picks, const Tensor& value, const char* who) {
  Tensor source = squeeze_leading(value, picks.result_shape.ndim());
  Layout wide = broadcast_to(source.layout(), picks.result_shape, who);
  source = cast(source, view.dtype());
  if (may_overlap(source, view)) source = clone(source);
  wide = broadcast_to(source.layout(), picks.result_shape, who);
  Tensor dense = source.with_layout(wide);
  if (dense.size() == 0) return;
  if (!picked_stride(wide, picks)) dense = clone(dense);
  kScatter(view.device(), describe(view, picks, dense), picks.is_unique);
}

Tensor squeeze_leading(const Tensor& value, int ndim) {
  Layout layout = value.layout();
  while (layout.ndim() > ndim && layout.shape[0] == 1) layout = remove_axis(layout, 0);
  return value.with_layout(layout);
}

}  // namespace cuop
