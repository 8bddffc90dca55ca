// Tables of offsets made on a GPU, and copies by them.
#include <bit>
#include <limits>

#include "cuop/backend/runtime.h"
#include "cuop/core/divide_up.h"
#include "cuop/jit/build_options.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/jit/tensor_expr.h"
#include "cuop/memory/current.h"
#include "cuop/ops/index/index_kernels.h"
#include "cuop/ops/strided.h"

namespace cuop::kernels {

namespace {

constexpr const char* kText = "cuop/ops/index/index.cuh";
/// More tiles of a mask than keep a device busy only cost sums over them.
constexpr int64_t kMaxTiles = 1024;

/// Up to so many axes have kernels of their own.
constexpr int kUnrolledAxes = 4;

/// The loops of a copy. Operands: the order in which threads walk, the dense side, the rest of the
/// sparse one, the list.
LoopNest<4> loops_of(const OffsetCopy& copy) {
  Shape shape{copy.count};
  // Neighbouring threads take neighbours of the dense side; where that is one value for all, of the
  // other side, whose rows then lie inwards of the list.
  Strides order{copy.dense_stride != 0 ? copy.dense_stride : std::numeric_limits<int64_t>::max()};
  Strides dense{copy.dense_stride}, sparse{0}, list{1};
  for (int i = 0; i < copy.rest.ndim(); ++i) {
    shape.push_back(copy.rest[i]);
    order.push_back(copy.dense_rest[i] != 0 ? copy.dense_rest[i] : copy.sparse_rest[i]);
    dense.push_back(copy.dense_rest[i]);
    sparse.push_back(copy.sparse_rest[i]);
    list.push_back(0);
  }
  return make_loop_nest<4>(shape, {&order, &dense, &sparse, &list});
}

/// How many elements of the innermost axis make one access of up to 16 bytes.
int width_of(const OffsetCopy& copy, const LoopNest<4>& nest) {
  const auto& inner = nest.inner();
  if (inner.strides[1] != 1 || inner.strides[2] != 1) return 1;
  int64_t counts = inner.size;
  for (int i = 0; i + 1 < nest.count; ++i) counts |= nest.axes[static_cast<size_t>(i)].strides[1];
  return jit::access_width(copy.itemsize, 16, reinterpret_cast<uintptr_t>(copy.dense), counts);
}

std::shared_ptr<Storage> filled(int64_t bytes, int byte, Device device) {
  return backend::filled_storage(bytes, byte, current_stream(device));
}

/// Waits for the stream.
template <class T>
T read_back(const std::shared_ptr<Storage>& storage) {
  T value{};
  const Device device = storage->device();
  backend::runtime(device).copy(&value, storage->data(), sizeof(T), current_stream(device));
  return value;
}

/// The tiles of a mask counted one by one and together.
class CountedMask {
 public:
  explicit CountedMask(const Tensor& mask) : device_(mask.device()) {
    const int64_t steps = divide_up(mask.size(), jit::kMaskStep);
    const int64_t steps_each = divide_up(steps, kMaxTiles);
    const int64_t tiles = divide_up(steps, steps_each);
    in_tile_ = memory::allocate_storage(tiles * 8, device_);
    total_ = filled(8, 0, device_);
    arguments_.mask = static_cast<const uint8_t*>(mask.data());
    arguments_.count = mask.size();
    arguments_.tiles = tiles;
    arguments_.tile = steps_each * jit::kMaskStep;
    arguments_.in_tile = static_cast<uint64_t*>(in_tile_->data());
    arguments_.total = static_cast<uint64_t*>(total_->data());
    jit::launch_text(count_mask_kernel(), device_, tiles, &arguments_);
  }

  int64_t total() const { return read_back<int64_t>(total_); }

  void list(const Shape& shape, const Strides& strides, int64_t* offsets) {
    const Strides order = contiguous_layout(shape).strides;
    const LoopNest<2> nest = make_loop_nest<2>(shape, {&order, &strides});
    arguments_.offsets = offsets;
    arguments_.axes = nest.count;
    for (size_t i = 0; i < static_cast<size_t>(nest.count); ++i) {
      arguments_.sizes[i] = nest.axes[i].size;
      arguments_.strides[i] = nest.axes[i].strides[1];
    }
    const bool is_wide = arguments_.count > (int64_t{1} << 31);
    jit::launch_text(list_mask_kernel(is_wide), device_, arguments_.tiles, &arguments_);
  }

 private:
  Device device_;
  std::shared_ptr<Storage> in_tile_, total_;
  jit::MaskTiles arguments_{};
};

void run(const OffsetCopy& copy, bool is_gather) {
  const ListedCopyPlan plan = plan_listed_copy(copy, is_gather);
  jit::launch_text(listed_copy_kernel(plan.form), copy.device, index_blocks(plan.arguments.count),
                   &plan.arguments);
}

}  // namespace

jit::TextKernel list_indices_kernel() {
  return {"index", kText, "IndexList", "list_indices", jit::kIndexThreads};
}
jit::TextKernel count_mask_kernel() {
  return {"count_mask", kText, "MaskTiles", "count_mask", jit::kIndexThreads};
}
jit::TextKernel list_mask_kernel(bool is_wide) {
  return {"list_mask", kText, "MaskTiles",
          jit::instance("list_mask", is_wide ? "uint64_t" : "uint32_t"), jit::kIndexThreads};
}
jit::TextKernel enter_offsets_kernel() {
  return {"enter_offsets", kText, "RepeatedOffsets", "enter_offsets", jit::kIndexThreads};
}
jit::TextKernel keep_last_offsets_kernel() {
  return {"keep_last_offsets", kText, "RepeatedOffsets", "keep_last_offsets", jit::kIndexThreads};
}

int64_t count_true_cuda(const Tensor& mask) {
  return mask.size() == 0 ? 0 : CountedMask(mask).total();
}

void mask_offsets_cuda(const Tensor& mask, const Strides& strides, int64_t* offsets) {
  if (mask.size() > 0) CountedMask(mask).list(mask.shape(), strides, offsets);
}

int64_t index_offsets_cuda(const Tensor& indices, int64_t size, int64_t stride, int64_t* offsets) {
  if (indices.size() == 0) return -1;
  const auto first_bad = filled(8, 0xff, indices.device());
  const jit::IndexList arguments{
      indices.data<int64_t>(), offsets, static_cast<uint64_t*>(first_bad->data()),
      indices.size(),          size,    stride};
  jit::launch_text(list_indices_kernel(), indices.device(), index_blocks(indices.size()),
                   &arguments);
  return read_back<int64_t>(first_bad);  // all bits set are -1
}

void add_offsets_cuda(Tensor& table, const Tensor& part) {
  if (table.size() == 0) return;
  jit::TensorExpr expr;
  expr.write(expr.op("add", {expr.leaf(table), expr.leaf(part)}), table);
}

std::shared_ptr<Storage> keep_last_offsets(const int64_t* offsets, int64_t count, Device device) {
  auto kept = memory::allocate_storage(8 * count, device);
  // At most half full, so that searches are short.
  const auto bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(2 * count - 1)));
  const auto keys = filled(int64_t{8} << bits, jit::kNoOffsetByte, device);
  const auto last = filled(int64_t{8} << bits, jit::kNoOffsetByte, device);
  const jit::RepeatedOffsets arguments{
      offsets, static_cast<int64_t*>(kept->data()), count,
      bits,    static_cast<int64_t*>(keys->data()), static_cast<int64_t*>(last->data())};
  jit::launch_text(enter_offsets_kernel(), device, index_blocks(count), &arguments);
  jit::launch_text(keep_last_offsets_kernel(), device, index_blocks(count), &arguments);
  return kept;
}

ListedCopyPlan plan_listed_copy(const OffsetCopy& copy, bool is_gather) {
  const LoopNest<4> nest = loops_of(copy);
  ListedCopyPlan plan;
  plan.form = {copy.itemsize, width_of(copy, nest), nest.count <= kUnrolledAxes ? nest.count : 0,
               is_gather};
  jit::ListedCopy& arguments = plan.arguments;
  arguments.dense = copy.dense;
  arguments.sparse = copy.sparse;
  arguments.offsets = copy.offsets;
  arguments.axes = nest.count;
  arguments.count = 1;
  for (int i = 0; i < nest.count; ++i) {
    const auto k = static_cast<size_t>(i);
    const int64_t width = i + 1 == nest.count ? plan.form.width : 1;
    arguments.sizes[k] = nest.axes[k].size / width;
    arguments.dense_strides[k] = nest.axes[k].strides[1] * width;
    arguments.sparse_strides[k] = nest.axes[k].strides[2] * width;
    arguments.list_strides[k] = nest.axes[k].strides[3];
    arguments.count *= arguments.sizes[k];
  }
  plan.form.is_wide = arguments.count > (int64_t{1} << 31);
  return plan;
}

jit::TextKernel listed_copy_kernel(const ListedCopyForm& form) {
  return {form.is_gather ? "gather" : "scatter", kText, "ListedCopy",
          jit::instance("listed_copy", jit::word_type(form.itemsize), form.width, form.axes,
                        form.is_gather, form.is_wide ? "uint64_t" : "uint32_t"),
          jit::kIndexThreads};
}

void gather_offsets_cuda(const OffsetCopy& copy) { run(copy, true); }

void scatter_offsets_cuda(const OffsetCopy& copy, bool is_unique) {
  if (is_unique) return run(copy, false);
  // Threads write in no order: of offsets that repeat only the last one may be written at all.
  const auto kept = keep_last_offsets(copy.offsets, copy.count, copy.device);
  OffsetCopy once = copy;
  once.offsets = static_cast<const int64_t*>(kept->data());
  run(once, false);
}

}  // namespace cuop::kernels
