#include <algorithm>
#include <bit>
#include <utility>

#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/memory/current.h"
#include "cuop/ops/places.h"
#include "cuop/ops/sort/radix_internal.h"
#include "cuop/ops/sort/sort_cuda_internal.h"
#include "cuop/ops/sort/sort_kernels.h"

namespace cuop::kernels {

namespace {

// As in merge.cuh.
constexpr int kThreads = 256, kItems = 8;
constexpr int64_t kTile = kSortTileItems;
static_assert(kTile == kItems * kThreads);
constexpr const char* kText = "cuop/ops/sort/sort.cuh";
constexpr const char* kDigitText = "cuop/ops/sort/digits.cuh";

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

void sort_by_merging(const Tensor& x, int axis, bool is_descending, const Tensor& out,
                     const SortForm& form) {
  SortPlan plan = plan_sort(x, axis, is_descending, out, form);
  jit::SortLines& a = plan.arguments;
  const jit::LinePair& lines = a.order.lines;
  const Device device = x.device();
  std::shared_ptr<Storage> memory[2];
  if (plan.run_bytes > 0) {
    for (auto& each : memory) each = memory::allocate_storage(plan.run_bytes, device);
    a.to = runs_in(form, lines.count * lines.length, memory[0]->data());
    a.from = runs_in(form, lines.count * lines.length, memory[1]->data());
  }
  jit::launch_text(sort_tiles_kernel(form), device, plan.blocks, &a);
  for (a.run = kTile; a.run < lines.length; a.run *= 2) {
    std::swap(a.from, a.to);
    jit::launch_text(merge_runs_kernel(form), device, plan.merge_blocks, &a);
  }
}

void run(const Tensor& x, int axis, bool is_descending, const Tensor& out, bool gives_positions) {
  const int64_t length = x.shape(axis);
  const SortForm form{x.dtype(), gives_positions, length > (int64_t{1} << 31)};
  const bool by_digits =
      length > kTile && accesses_by_digits(x.dtype()) < accesses_by_merging(length);
  (by_digits ? sort_by_digits_cuda : sort_by_merging)(x, axis, is_descending, out, form);
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
jit::TextKernel count_digits_kernel(const SortForm& form) {
  return {"sort", kDigitText, "DigitSort", call("count_digits", form), kThreads};
}
jit::TextKernel sort_by_digit_kernel(const SortForm& form) {
  return {"sort", kDigitText, "DigitSort", call("sort_by_digit", form), kThreads};
}
jit::TextKernel mark_runs_kernel(DType dtype) {
  return {"unique", kText, "RunStarts", cat("mark_runs<", key_of(dtype), ">"), kThreads};
}

int64_t position_bytes(const SortForm& form) {
  return form.gives_positions ? form.is_wide ? 8 : 4 : 0;
}

jit::SortedRuns runs_in(const SortForm& form, int64_t records, void* memory) {
  const int64_t key = itemsize(form.dtype), position = position_bytes(form);
  auto* const bytes = static_cast<std::byte*>(memory);
  if (bytes == nullptr) return {};
  // The wider ones first, so that both are aligned.
  return key >= position ? jit::SortedRuns{bytes, bytes + records * key}
                         : jit::SortedRuns{bytes + records * position, bytes};
}

SortPlan plan_sort(const Tensor& x, int axis, bool is_descending, const Tensor& out,
                   const SortForm& form) {
  SortPlan plan;
  plan.form = form;
  jit::SortLines& a = plan.arguments;
  a.order = {lines_along(axis, x, out), infinity_of(x.dtype()), is_descending};
  const jit::LinePair& lines = a.order.lines;
  a.tiles = divide_up(lines.length, kTile);
  const auto fitting =
      std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(lines.length, kItems)));
  a.width = static_cast<int>(std::min<uint64_t>(fitting, kTile));
  plan.blocks = divide_up(lines.count, kTile / a.width) * a.tiles;
  if (a.tiles > 1) {
    plan.merge_blocks = lines.count * a.tiles;
    plan.run_bytes = lines.count * lines.length * (itemsize(form.dtype) + position_bytes(form));
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
