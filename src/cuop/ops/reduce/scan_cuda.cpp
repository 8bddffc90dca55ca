#include <cstdlib>

#include "cuop/backend/runtime.h"
#include "cuop/core/divide_up.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/memory/current.h"
#include "cuop/ops/places.h"
#include "cuop/ops/reduce/reduce_kernels.h"

namespace cuop::kernels {

namespace {

constexpr int64_t kSumBytes = 16;  // of the widest sum
/// Shorter lines are no work for a block; so many lines side by side are work for threads.
constexpr int64_t kShortLine = 64, kManyLines = 1 << 14;

}  // namespace

void ScanPlan::set_scratch(unsigned* zeros, void* values) {
  const int64_t units = arguments.lines.count * arguments.tiles;
  arguments.ticket = zeros;
  arguments.has_sum = zeros + 1;
  arguments.has_start = zeros + 1 + units;
  arguments.sums = values;
  arguments.starts = static_cast<std::byte*>(values) + units * kSumBytes;
}

ScanPlan plan_scan(const Tensor& x, int axis, const Tensor& out) {
  ScanPlan plan;
  jit::Scan& a = plan.arguments;
  a.lines = lines_along(axis, x, out);
  const jit::LinePair& lines = a.lines;
  const bool is_side_by_side =
      lines.count > 1 && std::abs(lines.starts.innermost_stride(0)) < std::abs(lines.x_step);
  plan.by_tiles = lines.length > kShortLine && !(is_side_by_side && lines.count >= kManyLines);
  if (!plan.by_tiles) {
    plan.blocks = divide_up(lines.count, jit::kScanThreads);
    return plan;
  }
  a.tiles = divide_up(lines.length, jit::kScanTile);
  plan.blocks = lines.count * a.tiles;
  const int64_t starts = lines.count * divide_up(a.tiles, jit::kScanGroup);
  plan.sums = a.tiles > 1 ? plan.blocks + starts : 0;
  plan.flags = 1 + plan.sums;
  return plan;
}

jit::TextKernel scan_kernel(DType source, DType out, bool by_tiles) {
  const char* sum = is_complex(out) ? "Complex<double>" : is_integer(out) ? "uint64_t" : "double";
  return {"cumsum", "cuop/ops/reduce/scan.cuh", "Scan",
          jit::instance(by_tiles ? "scan_tiles" : "scan_short_lines", source, sum, out),
          jit::kScanThreads};
}

void cumsum_cuda(const Tensor& x, int axis, const Tensor& result) {
  const Device device = x.device();
  ScanPlan plan = plan_scan(x, axis, result);
  std::shared_ptr<Storage> zeros, values;
  if (plan.by_tiles) {
    const int64_t bytes = plan.flags * static_cast<int64_t>(sizeof(unsigned));
    zeros = backend::filled_storage(bytes, 0, current_stream(device));
    values = memory::allocate_storage(plan.sums * kSumBytes, device);
    plan.set_scratch(static_cast<unsigned*>(zeros->data()), values->data());
  }
  jit::launch_text(scan_kernel(x.dtype(), result.dtype(), plan.by_tiles), device, plan.blocks,
                   &plan.arguments);
}

}  // namespace cuop::kernels
