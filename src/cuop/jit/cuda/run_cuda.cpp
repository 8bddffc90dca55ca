#include <algorithm>
#include <optional>

#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/execution.h"
#include "cuop/core/divide_up.h"
#include "cuop/jit/build_options.h"
#include "cuop/jit/cuda/arrivals.h"
#include "cuop/jit/cuda/expr_cuda.h"
#include "cuop/jit/cuda/kernel_arguments.h"
#include "cuop/jit/cuda/kernel_cache.h"
#include "cuop/jit/cuda/kernel_fields.h"
#include "cuop/jit/cuda/row_plan.h"
#include "cuop/jit/cuda/steps.h"
#include "cuop/jit/run.h"
#include "cuop/memory/current.h"

namespace cuop::jit {

namespace {

void launch_elementwise(const LoadedKernel& kernel, const Expr& expr, const Bindings& bindings,
                        const Loops& loops, Stream stream) {
  const LaunchArguments arguments = pack_arguments(expr, bindings, loops, {});
  const int threads = block_threads(kElementwiseThreads);
  const int64_t blocks = divide_up(loops.packs(), int64_t{threads});
  launch(kernel, {.grid_x = grid_blocks(blocks), .threads = static_cast<unsigned>(threads)},
         arguments.bytes.data(), stream);
}

void launch_reduction(const LoadedKernel& kernel, const Expr& expr, const Bindings& bindings,
                      const Loops& loops, Stream stream) {
  const int64_t multiprocessors =
      backend::cuda::cuda_runtime(stream.device).properties().multiprocessors;
  const RowSharing sharing = share_rows(loops.rows(), loops.steps(), loops.team, multiprocessors);
  RowPieces pieces;
  pieces.piece = sharing.piece;
  std::shared_ptr<Storage> partials;
  std::optional<Arrivals> arrivals;  // both until the launch
  if (sharing.pieces > 1) {
    const int64_t state = detail::state_bytes(expr, detail::states_abreast(loops));
    partials = memory::allocate_storage(loops.rows() * sharing.pieces * state, stream.device);
    pieces.partials = partials->data();
    pieces.arrivals = arrivals.emplace(sharing.groups, stream).data();
  }
  const LaunchArguments arguments = pack_arguments(expr, bindings, loops, pieces);
  launch(kernel,
         {.grid_x = grid_blocks(sharing.groups),
          .grid_y = static_cast<unsigned>(sharing.pieces),
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
  loops.add_key_to(key);
  const LoadedKernel* const kernel = find(device, key, [&] { return kernel_request(expr, loops); });
  if (kernel == nullptr) return false;
  const auto launch_kind = loops.is_reduction ? launch_reduction : launch_elementwise;
  launch_kind(*kernel, expr, bindings, loops, current_stream(device));
  return true;
}

bool start_known(const Expr& expr, const Bindings& bindings) {
  return start(expr, bindings, known_kernel);
}

/// While a fused kernel is compiled in the background its operations run one by one, where their
/// kernels are loaded or on disk; not in a captured graph, which would repeat these for ever.
void run_some(const Expr& expr, const Bindings& bindings) {
  if (start(expr, bindings, kernel_if_loaded)) return;
  const Stream stream = current_stream(bindings.outputs.front()->device());
  const bool has_room = backend::execution_options().spare.has_steps;
  if (has_room && can_run_in_steps(expr, bindings) && !backend::cuda::is_capturing(stream)) {
    if (start(expr, bindings, kernel_if_ready)) return;
    if (run_in_steps(expr, bindings, start_known)) return;
  }
  start(expr, bindings, wait_for_kernel);
}

}  // namespace

void run_cuda(const Expr& expr, const Bindings& bindings) {
  for (const Tensor* leaf : bindings.leaves) leaf->data();  // deferred values are computed first
  for (const Tensor* output : bindings.outputs) output->data();
  constexpr size_t kMost = kMaxGpuOutputs;
  if (bindings.outputs.size() <= kMost) return run_some(expr, bindings);
  for (size_t begin = 0; begin < bindings.outputs.size(); begin += kMost) {
    const size_t count = std::min(kMost, bindings.outputs.size() - begin);
    Expr part = expr.with_outputs(begin, count);
    Bindings own = bindings;
    own.outputs = bindings.outputs.subspan(begin, count);
    run_some(part, own);
  }
}

}  // namespace cuop::jit
