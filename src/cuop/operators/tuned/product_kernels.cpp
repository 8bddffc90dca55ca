#include "cuop/operators/tuned/product_kernels.h"

#include <algorithm>

#include "cuop/core/text.h"
#include "cuop/jit/build_options.h"
#include "cuop/operators/tuned/demands.h"
#include "cuop/ops/matmul/matmul_kernels.h"

namespace cuop {

namespace {

/// From this edge of the result on, large tiles are many enough.
constexpr int64_t kLargeEdge = 1024;
/// Results of which a smaller tile has more than one across are not worth it.
constexpr int64_t kTiles[] = {32, 64, 128};

bool leaves_library(const JitConfig& config) {
  JitConfig plain = config;
  plain.enable_jit = true;
  plain.enable_tensor_core = true;
  plain.optimization_level = config.optimization_level == "O0" ? "O0" : "auto";
  return plain == JitConfig{};
}

std::vector<KernelType> types_of(const JitConfig& config) {
  if (wants_simple(config)) return {KernelType::kSimple};
  if (config.kernel_type != KernelType::kAuto) return {config.kernel_type};
  if (!config.enable_tensor_core) return {KernelType::kTiled, KernelType::kSimple};
  return {KernelType::kTiled, KernelType::kTensorCore, KernelType::kSimple};
}

Kernel kernel_of(const JitConfig& config, KernelType type, int64_t tile) {
  Kernel kernel{type, config.tile_size != 0 ? config.tile_size : tile};
  kernel.threads = config.block_size;
  kernel.stages = config.num_stages;
  kernel.is_bulk = config.enable_tma;
  kernel.in_shared = config.enable_shared_memory_opt;
  kernel.is_coalesced = config.enable_memory_coalescing;
  return kernels::completed_product(kernel);
}

/// The tiles worth a try for a result of this edge, the rule's first.
std::vector<int64_t> tiles_for(KernelType type, int64_t edge) {
  if (type == KernelType::kSimple) return {16};
  if (edge <= 32) return {32};
  if (edge <= 64) return {64};
  return edge < kLargeEdge ? std::vector<int64_t>{64, 128} : std::vector<int64_t>{128, 64};
}

void add_possible(std::vector<Kernel>& kernels, const JitConfig& config, KernelType type,
                  std::span<const int64_t> tiles, DType dtype, const backend::GpuLimits& limits) {
  for (const int64_t tile : tiles) {
    const Kernel kernel = kernel_of(config, type, tile);
    const bool is_there = std::find(kernels.begin(), kernels.end(), kernel) != kernels.end();
    if (is_there) continue;
    if (kernels::product_obstacle(kernel, dtype, limits, config.max_registers).empty()) {
      kernels.push_back(kernel);
    }
  }
}

}  // namespace

std::vector<Kernel> product_kernels(const JitConfig& config, DType dtype, int64_t edge,
                                    const backend::GpuLimits& limits) {
  std::vector<Kernel> kernels;
  if (leaves_library(config)) kernels.push_back({});
  for (const KernelType type : types_of(config)) {
    add_possible(kernels, config, type, tiles_for(type, edge), dtype, limits);
  }
  if (!kernels.empty()) return kernels;
  // What is asked for may go with another tile only.
  for (const KernelType type : types_of(config)) {
    add_possible(kernels, config, type, kTiles, dtype, limits);
  }
  return kernels;
}

std::string product_obstacle(const JitConfig& config, Device device, DType dtype,
                             const backend::GpuLimits& limits) {
  const bool is_on_units = config.kernel_type == KernelType::kTensorCore;
  if (is_on_units && !config.enable_tensor_core) {
    return "kernel_type 'tensor_core' and enable_tensor_core=False contradict each other";
  }
  if (is_on_units && config.optimization_level == "O0") {
    return "optimization_level 'O0' is the simple kernel, kernel_type asks for 'tensor_core'";
  }
  if (const std::string few = registers_obstacle(config, device); !few.empty()) return few;
  if (!product_kernels(config, dtype, kLargeEdge, limits).empty()) return "";
  const KernelType type = types_of(config).front();
  return cat("on ", device, ": ",
             kernels::product_obstacle(kernel_of(config, type, tiles_for(type, 64).front()), dtype,
                                       limits, config.max_registers));
}

}  // namespace cuop
