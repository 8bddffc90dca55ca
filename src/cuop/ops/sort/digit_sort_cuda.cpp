// Long lines on a GPU: sorted by digits where that takes fewer passes over memory than merging.
#include <algorithm>
#include <bit>

#include "cuop/backend/runtime.h"
#include "cuop/core/divide_up.h"
#include "cuop/memory/current.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/places.h"
#include "cuop/ops/sort/sort_cuda_internal.h"

namespace cuop::kernels {

namespace {

// As in digits.cuh.
constexpr int kThreads = 256, kValues = 256;
constexpr int64_t kManyItems = 16, kFewItems = 8, kSmallRecord = 8;
/// Elements whose counts are worth adding to those of the line, and the most such parts of a line.
constexpr int64_t kLeastStretch = 1 << 14, kMostStretches = 4096;

}  // namespace

int64_t accesses_by_digits(DType dtype) { return 1 + 2 * itemsize(dtype); }

int64_t accesses_by_merging(int64_t length) {
  const auto tiles = static_cast<uint64_t>(divide_up(length, kSortTileItems));
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
  const int64_t tile = kThreads * (record <= kSmallRecord ? kManyItems : kFewItems);
  a.tiles = divide_up(lines.length, tile);
  a.stretch = std::max(kLeastStretch, divide_up(lines.length, kMostStretches));
  a.stretches = divide_up(lines.length, a.stretch);
  plan.count_blocks = lines.count * a.stretches;
  plan.blocks = lines.count * a.tiles;
  plan.run_bytes = lines.count * lines.length * record;
  const int64_t words = (plan.blocks + lines.count * plan.digits) * kValues;
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
  a.starts = a.words + blocks * kValues;
  a.arrivals = reinterpret_cast<unsigned*>(a.starts + lines * digits * kValues);
  a.needed = a.arrivals + lines;
  a.tickets = a.needed + lines;
}

void sort_by_digits_cuda(const Tensor& given, int axis, bool is_descending, const Tensor& out,
                         const SortForm& form) {
  // The first pass may be the last one, and writes where others still read.
  const Tensor x = given.data() == out.data() ? clone(given) : given;
  const Device device = x.device();
  DigitSortPlan plan = plan_digit_sort(x, axis, is_descending, out, form);
  const auto zeros = memory::allocate_storage(plan.zero_bytes, device);
  backend::runtime(device).fill_bytes(zeros->data(), 0, plan.zero_bytes, current_stream(device));
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
