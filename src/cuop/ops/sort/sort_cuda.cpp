#include <algorithm>
#include <bit>
#include <utility>

#include "cuop/core/text.h"
#include "cuop/memory/current.h"
#include "cuop/ops/sort/radix_internal.h"
#include "cuop/ops/sort/sort_cuda_internal.h"
#include "cuop/ops/sort/sort_kernels.h"
#include "cuop/ops/strided.h"

namespace cuop::kernels {

namespace {

// As in merge.cuh.
constexpr int kThreads = 256, kItems = 8;
constexpr int64_t kTile = kItems * kThreads;
constexpr const char* kText = "cuop/ops/sort/sort.cuh";

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// The key and what its bits mean, as kernel text names them.
std::string key_of(DType dtype) {
  const bool is_signed = is_signed_integer(dtype);
  const char* kind = is_floating(dtype) ? "kFloating" : is_signed ? "kSigned" : "kUnsigned";
  return cat("uint", 8 * itemsize(dtype), "_t, NumberKind::", kind);
}

std::string call(const char* function, const SortForm& form) {
  const char* position = form.is_wide ? "uint64_t" : "uint32_t";
  return cat(function, "<", key_of(form.dtype), ", ",
             form.gives_positions ? position : "NoPosition", ">");
}

int64_t position_bytes(const SortForm& form) {
  return form.gives_positions ? form.is_wide ? 8 : 4 : 0;
}

void run(const Tensor& x, int axis, bool is_descending, const Tensor& out, bool gives_positions) {
  SortPlan plan = plan_sort(x, axis, is_descending, out, gives_positions);
  jit::SortLines& a = plan.arguments;
  const Device device = x.device();
  std::shared_ptr<Storage> memory[2];
  if (plan.run_bytes > 0) {
    for (auto& each : memory) each = memory::allocate_storage(plan.run_bytes, device);
    a.to = plan.runs_in(memory[0]->data());
    a.from = plan.runs_in(memory[1]->data());
  }
  jit::launch_text(sort_tiles_kernel(plan.form), device, plan.blocks, &a);
  for (a.run = kTile; a.run < a.length; a.run *= 2) {
    std::swap(a.from, a.to);
    jit::launch_text(merge_runs_kernel(plan.form), device, plan.merge_blocks, &a);
  }
}

}  // namespace

uint64_t infinity_of(DType dtype) {
  return visit_dtype(RealTypes{}, dtype, "sort", [](auto tag) {
    return static_cast<uint64_t>(infinity_bits<typename decltype(tag)::type>());
  });
}

jit::TextKernel sort_tiles_kernel(const SortForm& form) {
  return {"sort", kText, "SortLines", call("sort_tiles", form), kThreads};
}
jit::TextKernel merge_runs_kernel(const SortForm& form) {
  return {"sort", kText, "SortLines", call("merge_runs", form), kThreads};
}
jit::TextKernel mark_runs_kernel(DType dtype) {
  return {"unique", kText, "RunStarts", cat("mark_runs<", key_of(dtype), ">"), kThreads};
}

jit::SortedRuns SortPlan::runs_in(void* memory) const {
  const int64_t count = arguments.lines * arguments.length;
  const int64_t key = itemsize(form.dtype), position = position_bytes(form);
  auto* const bytes = static_cast<std::byte*>(memory);
  // The wider ones first, so that both are aligned.
  return key >= position ? jit::SortedRuns{bytes, bytes + count * key}
                         : jit::SortedRuns{bytes + count * position, bytes};
}

SortPlan plan_sort(const Tensor& x, int axis, bool is_descending, const Tensor& out,
                   bool gives_positions) {
  Shape others = x.shape();
  others[axis] = 1;
  const LoopNest<2> nest = make_loop_nest<2>(others, {&x.strides(), &out.strides()});
  SortPlan plan;
  jit::SortLines& a = plan.arguments;
  a.x = x.data();
  a.out = out.data();
  a.axes = nest.count;
  for (int i = 0; i < nest.count; ++i) {
    const auto& loop = nest.axes[static_cast<size_t>(i)];
    a.sizes[i] = loop.size;
    a.x_strides[i] = loop.strides[0];
    a.out_strides[i] = loop.strides[1];
  }
  a.lines = nest.outer_size() * nest.inner().size;
  a.length = x.shape(axis);
  a.x_step = x.strides()[axis];
  a.out_step = out.strides()[axis];
  a.infinity = infinity_of(x.dtype());
  a.is_descending = is_descending;
  a.tiles = divide_up(a.length, kTile);
  const auto fitting = std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(a.length, kItems)));
  a.width = static_cast<int>(std::min<uint64_t>(fitting, kTile));
  plan.form = {x.dtype(), gives_positions, a.length > (int64_t{1} << 31)};
  plan.blocks = divide_up(a.lines, kTile / a.width) * a.tiles;
  if (a.tiles > 1) {
    plan.merge_blocks = a.lines * a.tiles;
    plan.run_bytes = a.lines * a.length * (itemsize(x.dtype()) + position_bytes(plan.form));
  }
  return plan;
}

void sort_cuda(const Tensor& x, int axis, bool is_descending, const Tensor& out) {
  run(x, axis, is_descending, out, false);
}

void argsort_cuda(const Tensor& x, int axis, bool is_descending, const Tensor& out) {
  run(x, axis, is_descending, out, true);
}

void mark_runs_cuda(const Tensor& x, const Tensor& order, const Tensor& starts) {
  const jit::RunStarts arguments{x.data(), order.data<int64_t>(), starts.data<bool>(), x.size(),
                                 infinity_of(x.dtype())};
  jit::launch_text(mark_runs_kernel(x.dtype()), x.device(), divide_up(x.size(), kThreads),
                   &arguments);
}

}  // namespace cuop::kernels
