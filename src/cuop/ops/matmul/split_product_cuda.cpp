// Products of float32 by parts: where they pay, and the launch of their kernels.
#include <algorithm>

#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/execution.h"
#include "cuop/backend/library_use.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/log.h"
#include "cuop/core/text.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/jit/kernels/stage_sizes.cuh"
#include "cuop/ops/matmul/kept_parts.h"
#include "cuop/ops/matmul/matmul_internal.h"
#include "cuop/ops/matmul/product_arguments_internal.h"
#include "cuop/ops/matmul/split_product_arguments.cuh"
#include "cuop/ops/matmul/split_product_internal.h"

namespace cuop::kernels {

namespace {

constexpr int kMajor = 9;  // compute capability 9.0
/// Chips of that capability with the full rate of matrix units have more than 100 multiprocessors;
/// one with 78 has a seventh of it.
constexpr int kFewestMultiprocessors = 100;

/// Up to this depth blocks go from tile to tile, which saves 5 us each; beyond it blocks that are
/// ahead would leave no lines in the L2 cache for those behind, and the GPU deals out the tiles.
constexpr int64_t kShortDepth = 512;

/// Operations a second of cuBLASLt's products.
constexpr double kLibraryRate = 4.9e13;

/// Seconds of the parts' product by tiles of so many columns. Measured on H100s, where products of
/// this length are bound by power: a step of the depth, and a tile's beginning and end, which takes
/// longer where rows of an odd length cannot be written in pairs.
double product_seconds(int64_t m, int64_t n, int64_t k, int64_t batch, int columns,
                       int multiprocessors) {
  const double step = split_step_seconds(columns), tile = n % 2 == 0 ? 3e-6 : 13e-6;
  const int64_t tiles =
      batch * divide_up(m, int64_t{jit::kSplitRows}) * divide_up(n, int64_t{columns});
  const auto turns = static_cast<double>(divide_up(tiles, int64_t{multiprocessors}));
  return turns * (static_cast<double>(divide_up(k, int64_t{jit::kSplitDepth})) * step + tile);
}

/// Operations a second of long products whose tiles are whole and many.
double long_rate(int multiprocessors) {
  constexpr int kColumns = 128;
  constexpr double kStepOperations = 2.0 * jit::kSplitRows * kColumns * jit::kSplitDepth;
  return kStepOperations * multiprocessors / split_step_seconds(kColumns);
}

}  // namespace

double split_step_seconds(int columns) { return columns < 128 ? 0.68e-6 : 1.18e-6; }

double library_pace(int multiprocessors) {
  return std::min(1.0, kLibraryRate / long_rate(multiprocessors));
}

int split_columns(int64_t m, int64_t n, int64_t k, int64_t batch, int multiprocessors) {
  // cuBLASLt's, the result's bytes behind it. Splitting reads 4 bytes of an element and writes 6;
  // two kernels are begun, not one.
  constexpr double kWriteRate = 3e12, kLibraryStart = 1e-5;
  constexpr double kSplitRate = 2.4e12, kStart = 8e-6, kSurely = 0.9;
  const auto x = static_cast<double>(m), y = static_cast<double>(n), z = static_cast<double>(k);
  const auto count = static_cast<double>(batch);
  const double library = count * x * y * (2 * z / kLibraryRate + 4 / kWriteRate) + kLibraryStart;
  const double splitting = 10 * count * (x * z + z * y) / kSplitRate + kStart;
  const auto of = [&](int columns) {
    return product_seconds(m, n, k, batch, columns, multiprocessors);
  };
  const int columns = of(64) < of(128) ? 64 : 128;
  return splitting + of(columns) < kSurely * library ? columns : 0;
}

double split_pace(int64_t m, int64_t n, int64_t k, int64_t batch, int multiprocessors) {
  const int columns = split_columns(m, n, k, batch, multiprocessors);
  if (columns == 0) return 0;
  const double operations = 2.0 * static_cast<double>(m) * static_cast<double>(n) *
                            static_cast<double>(k) * static_cast<double>(batch);
  return operations / long_rate(multiprocessors) /
         product_seconds(m, n, k, batch, columns, multiprocessors);
}

jit::TextKernel split_product_kernel(int columns) {
  return {"gemm bf16x6",
          "cuop/ops/matmul/split_product.cuh",
          "SplitProduct",
          jit::instance("multiply_split", columns),
          jit::kPipelineThreads,
          1,
          jit::pipeline_bytes(jit::split_stage_bytes(columns), jit::split_stages(columns))};
}

bool split_product_cuda(const Product& product, int columns, int64_t most_blocks) {
  // One call serves the longest batch axis that all three walk with one stride.
  const LoopNest<3> nest = batch_nest(product);
  const int64_t matrices = nest.inner().size;
  for (int64_t outer = 0; outer < nest.outer_size(); ++outer) {
    const auto offsets = nest.row_offsets(outer);
    const auto stack = [&](const Tensor& t, size_t i) {
      return MatrixStack::of(t, offsets[i], matrices, nest.inner().strides[i]);
    };
    const MatrixStack c = stack(product.c, 0), a = stack(product.a, 1), b = stack(product.b, 2);
    SplitStack of_a, of_b;
    KeptParts* const kept = nest.outer_size() == 1 ? KeptParts::current() : nullptr;
    try {
      if (kept != nullptr) {
        const auto both = kept->of(product.a, a, product.b, b.turned());
        of_a = both[0];
        of_b = both[1];
      } else {
        of_a = room_for_parts(a);
        of_b = room_for_parts(b.turned());
        split_stacks(of_a, of_b);
      }
    } catch (const MemoryError& error) {
      log(LogLevel::kInfo, "matmul: no room for parts, cuBLASLt multiplies: ", error.what());
      if (outer == 0) return false;
      throw;
    }
    multiply_parts(of_a, of_b, c, product.alpha, product.beta, columns, most_blocks);
  }
  return true;
}

void multiply_parts(const SplitStack& a, const SplitStack& b, const MatrixStack& c,
                    const Scalar& alpha, const Scalar& beta, int columns, int64_t most_blocks) {
  jit::SplitProduct p{};
  p.a = a.stack.data;
  p.b = b.stack.data;
  p.c = c.data;
  p.rows = c.lines;
  p.columns = c.depth;
  p.depth = a.stack.depth;
  p.a_row = a.stack.line_step;
  p.a_column = a.stack.depth_step;
  p.b_row = b.stack.depth_step;
  p.b_column = b.stack.line_step;
  p.c_row = c.line_step;
  p.c_column = c.depth_step;
  p.a_matrix = a.stack.matrix_step;
  p.b_matrix = b.stack.matrix_step;
  p.c_matrix = c.matrix_step;
  p.row_tiles = divide_up(p.rows, int64_t{jit::kSplitRows});
  p.column_tiles = divide_up(p.columns, int64_t{columns});
  p.tiles = c.matrices * p.row_tiles * p.column_tiles;
  p.alpha = coefficient_of(alpha, DType::kFloat32);
  p.beta = coefficient_of(beta, DType::kFloat32);
  p.lines_of_a = a.lines;
  p.lines_of_b = b.lines;
  const Device device = a.parts.device();
  const int64_t together = backend::cuda::cuda_runtime(device).properties().multiprocessors;
  const int64_t blocks =
      std::min({p.tiles, p.depth <= kShortDepth ? together : p.tiles, most_blocks});
  jit::launch_text(split_product_kernel(columns), device, blocks, &p);
  backend::note_matrix_units(kSplitPrecision);
}

std::string split_product_obstacle(Device device) {
  if (device.is_cpu()) return "the CPU has no matrix units of its kind";
  const auto& gpu = backend::cuda::cuda_runtime(device).properties();
  if (gpu.major == kMajor && gpu.minor == 0) return "";
  return cat("it needs a GPU of compute capability 9.0, ", device, " has ", gpu.major, ".",
             gpu.minor);
}

bool prefers_split_products(Device device) {
  if (device.is_cpu() || !env().split_products.value) return false;
  const backend::ExecutionOptions& options = backend::execution_options();
  if (options.matrix_units == backend::MatrixUnits::kForbidden) return false;
  if (!options.spare.has_copies) return false;
  const auto& gpu = backend::cuda::cuda_runtime(device).properties();
  return split_product_obstacle(device).empty() && gpu.multiprocessors >= kFewestMultiprocessors;
}

int split_columns_on(Device device, int64_t m, int64_t n, int64_t k, int64_t batch) {
  if (!prefers_split_products(device)) return 0;
  const auto& gpu = backend::cuda::cuda_runtime(device).properties();
  return split_columns(m, n, k, batch, gpu.multiprocessors);
}

bool try_split_product(const Product& product) {
  if (product.a.dtype() != DType::kFloat32 || product.c.dtype() != DType::kFloat32) return false;
  const int r = product.c.ndim() - 2;
  const int64_t m = product.c.shape(r), n = product.c.shape(r + 1), k = product.a.shape(r + 1);
  const int64_t together = batch_nest(product).inner().size;  // of the batch, in one call
  const int columns = split_columns_on(product.c.device(), m, n, k, together);
  if (columns != 0 && split_product_cuda(product, columns)) return true;
  if (KeptParts* const kept = KeptParts::current()) kept->forget();  // room for a workspace
  return false;
}

}  // namespace cuop::kernels
