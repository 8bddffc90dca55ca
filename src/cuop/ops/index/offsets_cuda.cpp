// Tables of offsets made on a GPU.
#include <bit>

#include "cuop/backend/runtime.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/jit/expr.h"
#include "cuop/jit/run.h"
#include "cuop/memory/current.h"
#include "cuop/ops/index/index_arguments.cuh"
#include "cuop/ops/index/index_cuda_internal.h"
#include "cuop/ops/index/index_kernels.h"
#include "cuop/ops/strided.h"

namespace cuop::kernels {

namespace {

constexpr const char* kText = "cuop/ops/index/offsets.cuh";
/// As the kernels take them; more tiles than keep a device busy only cost sums over them.
constexpr int64_t kMaskStep = 4096, kMaxTiles = 1024;

/// Memory of the current stream whose bytes all have one value.
std::shared_ptr<Storage> filled(int64_t nbytes, int byte, Device device) {
  auto storage = memory::allocate_storage(nbytes, device);
  backend::runtime(device).fill_bytes(storage->data(), byte, nbytes, current_stream(device));
  return storage;
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
    const int64_t steps = divide_up(mask.size(), kMaskStep);
    const int64_t steps_each = divide_up(steps, kMaxTiles);
    const int64_t tiles = divide_up(steps, steps_each);
    in_tile_ = memory::allocate_storage(tiles * 8, device_);
    total_ = filled(8, 0, device_);
    arguments_.mask = static_cast<const uint8_t*>(mask.data());
    arguments_.count = mask.size();
    arguments_.tiles = tiles;
    arguments_.tile = steps_each * kMaskStep;
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

}  // namespace

jit::TextKernel list_indices_kernel() {
  return {"index", kText, "IndexList", "list_indices", kIndexThreads};
}
jit::TextKernel count_mask_kernel() {
  return {"count_mask", kText, "MaskTiles", "count_mask", kIndexThreads};
}
jit::TextKernel list_mask_kernel(bool is_wide) {
  return {"list_mask", kText, "MaskTiles",
          cat("list_mask<", is_wide ? "uint64_t" : "uint32_t", ">"), kIndexThreads};
}
jit::TextKernel enter_offsets_kernel() {
  return {"enter_offsets", kText, "RepeatedOffsets", "enter_offsets", kIndexThreads};
}
jit::TextKernel keep_last_offsets_kernel() {
  return {"keep_last_offsets", kText, "RepeatedOffsets", "keep_last_offsets", kIndexThreads};
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
  static const int add = jit::find_op("add");
  jit::Expr expr;
  const int arguments[] = {expr.add_leaf(DType::kInt64), expr.add_leaf(DType::kInt64)};
  expr.add_output(expr.add_op(add, {DType::kInt64, DType::kInt64}, arguments));
  const Tensor* leaves[] = {&table, &part};
  const Tensor* output = &table;
  jit::run(expr, {table.shape(), 0, leaves, {}, {&output, 1}});
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

}  // namespace cuop::kernels
