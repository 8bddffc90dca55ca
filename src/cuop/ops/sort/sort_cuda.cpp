#include <algorithm>
#include <bit>
#include <utility>

#include "cuop/backend/runtime.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/memory/current.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/places.h"
#include "cuop/ops/sort/sort_kernels.h"
#include "cuop/ops/sort/sort_keys_internal.h"

namespace cuop::kernels {

namespace {

/// Elements whose counts are worth adding to those of the line, and the most such parts of a line.
constexpr int64_t kLeastStretch = 1 << 14, kMostStretches = 4096;
constexpr const char* kText = "cuop/ops/sort/sort.cuh";
constexpr const char* kDigitText = "cuop/ops/sort/digits.cuh";

std::string call(const char* function, const SortForm& form) {
  const char* position = form.is_wide ? "uint64_t" : "uint32_t";
  return jit::instance(function, key_text(form.dtype),
                       form.gives_positions ? position : "NoPosition");
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
  for (a.run = jit::kSortTile; a.run < lines.length; a.run *= 2) {
    std::swap(a.from, a.to);
    jit::launch_text(merge_runs_kernel(form), device, plan.merge_blocks, &a);
  }
}

void run(const Tensor& x, int axis, bool is_descending, const Tensor& out, bool gives_positions) {
  const int64_t length = x.shape(axis);
  const SortForm form{x.dtype(), gives_positions, length > (int64_t{1} << 31)};
  const bool by_digits =
      length > jit::kSortTile && accesses_by_digits(x.dtype()) < accesses_by_merging(length);
  (by_digits ? sort_by_digits_cuda : sort_by_merging)(x, axis, is_descending, out, form);
}

}  // namespace

std::string key_text(DType dtype) {
  const bool is_signed = is_signed_integer(dtype);
  const char* kind = is_floating(dtype) ? "kFloating" : is_signed ? "kSigned" : "kUnsigned";
  return cat(jit::word_type(itemsize(dtype)), ", NumberKind::", kind);
}

uint64_t infinity_of(DType dtype) {
  return visit_dtype(RealTypes{}, dtype, "sort",
                     []<class T>(TypeTag<T>) { return static_cast<uint64_t>(infinity_bits<T>()); });
}

jit::TextKernel sort_tiles_kernel(const SortForm& form) {
  return {"sort", kText, "SortLines", call("sort_tiles", form), jit::kSortThreads};
}
jit::TextKernel merge_runs_kernel(const SortForm& form) {
  return {"sort", kText, "SortLines", call("merge_runs", form), jit::kSortThreads};
}
jit::TextKernel count_digits_kernel(const SortForm& form) {
  return {"sort", kDigitText, "DigitSort", call("count_digits", form), jit::kSortThreads};
}
jit::TextKernel sort_by_digit_kernel(const SortForm& form) {
  return {"sort", kDigitText, "DigitSort", call("sort_by_digit", form), jit::kSortThreads};
}
jit::TextKernel mark_runs_kernel(DType dtype) {
  return {"unique", kText, "RunStarts", jit::instance("mark_runs", key_text(dtype)),
          jit::kSortThreads};
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
  a.tiles = divide_up(lines.length, jit::kSortTile);
  const auto fitting =
      std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(lines.length, jit::kSortItems)));
  a.width = static_cast<int>(std::min<uint64_t>(fitting, jit::kSortTile));
  plan.blocks = divide_up(lines.count, jit::kSortTile / a.width) * a.tiles;
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
  jit::launch_text(mark_runs_kernel(x.dtype()), x.device(), divide_up(x.size(), jit::kSortThreads),
                   &arguments);
}

int64_t accesses_by_digits(DType dtype) { return 1 + 2 * itemsize(dtype); }

int64_t accesses_by_merging(int64_t length) {
  const auto tiles = static_cast<uint64_t>(divide_up(length, jit::kSortTile));
  return 2 * (1 + std::bit_width(tiles - 1));
}

DigitSortPlan plan_digit_sort(const Tensor& x, int axis, bool is_descending, const Tensor& out,
                              const SortForm& form) {
  DigitSortPlan plan;
  plan.form = form;
  plan.digits = static_cast<int>(itemsize(form.dtype));
  jit::DigitSort& a = plan.arguments;
  a.order = {lines_along(axis, x, out), infinity_of(form.dtype), is_descending};
  const jit::LinePair& lines = a.order.lines;
  const int64_t record = itemsize(form.dtype) + position_bytes(form);
  const int64_t tile = jit::kSortThreads * jit::digit_items(record);
  a.tiles = divide_up(lines.length, tile);
  a.stretch = std::max(kLeastStretch, divide_up(lines.length, kMostStretches));
  a.stretches = divide_up(lines.length, a.stretch);
  plan.count_blocks = lines.count * a.stretches;
  plan.blocks = lines.count * a.tiles;
  plan.run_bytes = lines.count * lines.length * record;
  const int64_t words = (plan.blocks + lines.count * plan.digits) * jit::kDigitValues;
  const int64_t counters = 2 * lines.count + plan.digits;
  plan.zero_bytes = words * static_cast<int64_t>(sizeof(uint64_t)) +
                    counters * static_cast<int64_t>(sizeof(unsigned));
  return plan;
}

void DigitSortPlan::set_scratch(void* zeros, void* even, void* odd) {
  jit::DigitSort& a = arguments;
  const int64_t lines = a.order.lines.count, records = lines * a.order.lines.length;
  a.even = runs_in(form, records, even);
  a.odd = runs_in(form, records, odd);
  a.words = static_cast<uint64_t*>(zeros);
  a.starts = a.words + blocks * jit::kDigitValues;
  a.arrivals = reinterpret_cast<unsigned*>(a.starts + lines * digits * jit::kDigitValues);
  a.needed = a.arrivals + lines;
  a.tickets = a.needed + lines;
}

void sort_by_digits_cuda(const Tensor& given, int axis, bool is_descending, const Tensor& out,
                         const SortForm& form) {
  // The first pass may be the last one, and writes where others still read.
  const Tensor x = given.data() == out.data() ? clone(given) : given;
  const Device device = x.device();
  DigitSortPlan plan = plan_digit_sort(x, axis, is_descending, out, form);
  const auto zeros = backend::filled_storage(plan.zero_bytes, 0, current_stream(device));
  std::shared_ptr<Storage> runs[2];
  for (int i = 0; i < std::min(plan.digits - 1, 2); ++i) {
    runs[i] = memory::allocate_storage(plan.run_bytes, device);
  }
  const auto memory_of = [&](int i) { return runs[i] ? runs[i]->data() : nullptr; };
  plan.set_scratch(zeros->data(), memory_of(0), memory_of(1));
  jit::DigitSort& a = plan.arguments;
  jit::launch_text(count_digits_kernel(form), device, plan.count_blocks, &a);
  for (a.digit = 0; a.digit < plan.digits; ++a.digit) {
    jit::launch_text(sort_by_digit_kernel(form), device, plan.blocks, &a);
  }
}

}  // namespace cuop::kernels
