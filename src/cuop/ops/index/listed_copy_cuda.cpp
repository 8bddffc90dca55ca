// Gather and scatter on a GPU.
#include <cstdlib>
#include <limits>

#include "cuop/core/text.h"
#include "cuop/ops/index/index_arguments.cuh"
#include "cuop/ops/index/index_cuda_internal.h"
#include "cuop/ops/index/index_kernels.h"
#include "cuop/ops/strided.h"

namespace cuop::kernels {

namespace {

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
  const auto address = reinterpret_cast<uintptr_t>(copy.dense);
  const auto fits = [&](int64_t width) {
    bool is_fit =
        inner.size % width == 0 && address % static_cast<uintptr_t>(width * copy.itemsize) == 0;
    for (int i = 0; i + 1 < nest.count; ++i) {
      is_fit = is_fit && nest.axes[static_cast<size_t>(i)].strides[1] % width == 0;
    }
    return is_fit;
  };
  int64_t width = 16 / copy.itemsize;
  while (!fits(width)) width /= 2;
  return static_cast<int>(width);
}

void run(const OffsetCopy& copy, bool is_gather) {
  const ListedCopyPlan plan = plan_listed_copy(copy, is_gather);
  jit::launch_text(listed_copy_kernel(plan.form), copy.device, index_blocks(plan.arguments.count),
                   &plan.arguments);
}

}  // namespace

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
  const std::string word =
      form.itemsize == 16 ? std::string("Word16") : cat("uint", 8 * form.itemsize, "_t");
  return {form.is_gather ? "gather" : "scatter", "cuop/ops/index/listed_copy.cuh", "ListedCopy",
          cat("listed_copy<", word, ", ", form.width, ", ", form.axes, ", ",
              form.is_gather ? "true" : "false", ", ", form.is_wide ? "uint64_t" : "uint32_t", ">"),
          kIndexThreads};
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
