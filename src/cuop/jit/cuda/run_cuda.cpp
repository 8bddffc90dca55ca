#include "cuop/jit/cuda/run_cuda.h"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>

#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/jit/cuda/expr_cuda.h"
#include "cuop/jit/cuda/kernel_arguments.h"
#include "cuop/jit/cuda/kernel_cache.h"
#include "cuop/jit/cuda/steps.h"
#include "cuop/memory/current.h"

namespace cuop::jit {

namespace {

/// More outputs cost registers; the rest of them is another launch.
constexpr size_t kMaxOutputs = 16;
constexpr int kReduceThreads = 256;
/// Blocks a multiprocessor is given before threads go round again.
constexpr int64_t kBlocksPerMultiprocessor = 256;
/// Blocks a multiprocessor should have before rows are shared among blocks.
constexpr int64_t kBusyBlocks = 4;
/// Steps that a thread should have of a shared row at least.
constexpr int64_t kMinStepsPerThread = 4;
constexpr int64_t kMaxPieces = 1024;
constexpr int64_t kArrivals = 4096;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Counters that are zero between launches: blocks of a shared row count themselves and the last
/// puts the zero back. One array a stream, as launches of one stream follow each other.
void* arrivals_of(Stream stream) {
  static std::mutex mutex;
  static auto* all = new std::map<std::pair<int, void*>, std::shared_ptr<Storage>>;
  const std::lock_guard lock(mutex);
  auto& counters = (*all)[{stream.device.index, stream.handle}];
  if (!counters) {
    constexpr int64_t kBytes = kArrivals * static_cast<int64_t>(sizeof(unsigned));
    counters = memory::allocate_storage(kBytes, stream.device);
    backend::runtime(stream.device).fill_bytes(counters->data(), 0, kBytes, stream);
  }
  return counters->data();
}

/// How many blocks share a row, so that few long rows keep the whole device busy.
int64_t pieces_of(const Loops& loops, int64_t multiprocessors) {
  const int64_t steps = loops.reduced_size() / loops.width;
  const int64_t groups = divide_up(loops.kept_size(), kReduceThreads / loops.team);
  const int64_t wanted = kBusyBlocks * multiprocessors;
  if (groups >= wanted || groups > kArrivals) return 1;
  const int64_t worthwhile = steps / (loops.team * kMinStepsPerThread);
  return std::clamp<int64_t>(std::min(divide_up(wanted, groups), worthwhile), 1, kMaxPieces);
}

void launch_elementwise(const LoadedKernel& kernel, const Expr& expr, const Bindings& bindings,
                        const Loops& loops, int64_t multiprocessors, Stream stream) {
  const LaunchArguments arguments = pack_arguments(expr, bindings, loops, {});
  int64_t steps = divide_up(loops.sizes[static_cast<size_t>(loops.axes - 1)], loops.width);
  for (int i = 0; i + 1 < loops.axes; ++i) steps *= loops.sizes[static_cast<size_t>(i)];
  const int64_t blocks =
      std::min(divide_up(steps, kElementwiseThreads), kBlocksPerMultiprocessor * multiprocessors);
  launch(kernel, {.grid_x = static_cast<unsigned>(blocks), .threads = kElementwiseThreads},
         arguments.bytes.data(), stream);
}

void launch_reduction(const LoadedKernel& kernel, const Expr& expr, const Bindings& bindings,
                      const Loops& loops, int64_t multiprocessors, Stream stream) {
  const int64_t steps = loops.reduced_size() / loops.width;
  int64_t count = pieces_of(loops, multiprocessors);
  RowPieces pieces;
  pieces.piece = std::max<int64_t>(1, divide_up(steps, count));
  count = std::max<int64_t>(1, divide_up(steps, pieces.piece));
  std::shared_ptr<Storage> partials;
  if (count > 1) {
    partials =
        memory::allocate_storage(loops.kept_size() * count * state_bytes(expr), stream.device);
    pieces.partials = partials->data();
    pieces.arrivals = arrivals_of(stream);
  }
  const LaunchArguments arguments = pack_arguments(expr, bindings, loops, pieces);
  const int64_t groups = divide_up(loops.kept_size(), kReduceThreads / loops.team);
  const int64_t blocks =
      count > 1 ? groups : std::min(groups, kBlocksPerMultiprocessor * multiprocessors);
  launch(kernel,
         {.grid_x = static_cast<unsigned>(blocks),
          .grid_y = static_cast<unsigned>(count),
          .threads = kReduceThreads},
         arguments.bytes.data(), stream);
}

using FindKernel = const LoadedKernel*(Device, const std::string& key, const DescribeKernel&);

const LoadedKernel* wait_for_kernel(Device device, const std::string& key,
                                    const DescribeKernel& describe) {
  return &loaded_kernel(device, key, describe);
}

/// Starts the expression's kernel; false when `find` has none.
bool start(const Expr& expr, const Bindings& bindings, FindKernel& find) {
  const Device device = bindings.outputs.front()->device();
  const Loops loops = plan_loops(expr, bindings, element_cost(expr));
  if (loops.kept_size() == 0) return true;
  std::string key = expr.structural_key();
  key += loops.key();
  const LoadedKernel* const kernel = find(device, key, [&] { return kernel_request(expr, loops); });
  if (kernel == nullptr) return false;
  const int64_t multiprocessors = backend::cuda::cuda_runtime(device).properties().multiprocessors;
  const auto launch_kind = loops.is_reduction ? launch_reduction : launch_elementwise;
  launch_kind(*kernel, expr, bindings, loops, multiprocessors, current_stream(device));
  return true;
}

bool start_known(const Expr& expr, const Bindings& bindings) {
  return start(expr, bindings, known_kernel);
}

/// A fused kernel that is not there yet is compiled in the background while its steps answer, where
/// their kernels are there; a captured graph would repeat the steps for ever.
void run_some(const Expr& expr, const Bindings& bindings) {
  const Stream stream = current_stream(bindings.outputs.front()->device());
  if (can_run_in_steps(expr, bindings) && !backend::cuda::is_capturing(stream)) {
    if (start(expr, bindings, kernel_if_ready)) return;
    if (run_in_steps(expr, bindings, start_known)) return;
  }
  start(expr, bindings, wait_for_kernel);
}

}  // namespace

void run_cuda(const Expr& expr, const Bindings& bindings) {
  for (const Tensor* leaf : bindings.leaves) leaf->data();  // deferred values are computed first
  for (const Tensor* output : bindings.outputs) output->data();
  if (bindings.outputs.size() <= kMaxOutputs) return run_some(expr, bindings);
  for (size_t begin = 0; begin < bindings.outputs.size(); begin += kMaxOutputs) {
    const size_t count = std::min(kMaxOutputs, bindings.outputs.size() - begin);
    Expr part = expr.with_outputs(begin, count);
    Bindings own = bindings;
    own.outputs = bindings.outputs.subspan(begin, count);
    run_some(part, own);
  }
}

}  // namespace cuop::jit
