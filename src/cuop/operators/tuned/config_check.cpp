#include "cuop/operators/tuned/config_check.h"

#include <bit>
#include <cmath>
#include <string_view>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/jit/build_options.h"
#include "cuop/operators/tuned/demands.h"
#include "cuop/operators/tuned/product_kernels.h"

namespace cuop {

using backend::KernelType;

namespace {

constexpr int64_t kLeastBlock = 32, kMostBlock = 1024;

/// A field with a value that a device cannot give it, if it is asked for.
struct AskedField {
  bool is_asked = false;
  std::string why;
};

template <size_t size>
std::string first_asked(const AskedField (&rows)[size]) {
  for (const AskedField& row : rows) {
    if (row.is_asked) return row.why;
  }
  return "";
}

/// What a library's kernels leave open: nothing of how they were compiled.
std::string library_obstacle(const JitConfig& config, Device device, const std::string& library) {
  const auto chosen = [&](const char* field, auto value, const char* what) {
    return cat(field, " is ", value, ", but on ", device, ' ', library, " chooses ", what,
               ": leave it at its default");
  };
  const auto compiled = [&](const std::string& field) {
    return cat(field, ": on ", device, " the kernels are ", library,
               "'s, which are compiled already: leave it at its default");
  };
  const AskedField rows[] = {
      {config.tile_size != 0, chosen("tile_size", config.tile_size, "the tiles")},
      {config.block_size != 0, chosen("block_size", config.block_size, "the threads of a block")},
      {config.num_stages != 0, chosen("num_stages", config.num_stages, "the stages of a pipeline")},
      {config.enable_tma, chosen("enable_tma", "True", "how its kernels copy")},
      {config.max_registers != 0, compiled(cat("max_registers is ", config.max_registers))},
      {!config.enable_shared_memory_opt, compiled("enable_shared_memory_opt is False")},
      {!config.enable_loop_unroll, compiled("enable_loop_unroll is False")},
      {!config.enable_memory_coalescing, compiled("enable_memory_coalescing is False")}};
  return first_asked(rows);
}

bool is_block(int64_t threads) {
  return threads == 128 || threads == 256 || threads == 512 || threads == 1024;
}

std::string own_obstacle(const JitConfig& config, Device device, const KernelTraits& traits) {
  const std::string own = cat("the operator's own kernels for ", device);
  const AskedField rows[] = {
      {config.kernel_type == KernelType::kTensorCore,
       cat("kernel_type 'tensor_core': ", own,
           " multiply no matrices, so matrix units have nothing to do: use 'auto', 'tiled' or "
           "'simple'")},
      {config.tile_size != 0,
       cat("tile_size is ", config.tile_size, ", but ", own, " have no tiles: leave it 0")},
      {config.block_size != 0 && !traits.takes_block,
       cat("block_size is ", config.block_size, ", but ", own,
           " share rows among blocks of 256 threads, which are part of their text: leave it 0")},
      {config.block_size != 0 && !is_block(config.block_size),
       cat("block_size is ", config.block_size, ", but ", own,
           " have blocks of 128, 256, 512 or 1024 threads; 0 leaves them the choice")},
      {config.num_stages != 0, cat("num_stages is ", config.num_stages, ", but ", own,
                                   " have no copy pipeline: leave it 0")},
      {config.enable_tma,
       cat("enable_tma is True, but ", own, " do not use the tensor memory accelerator")},
      {!config.enable_shared_memory_opt,
       cat("enable_shared_memory_opt is False, but ", own,
           " have no variant without shared memory, through which threads exchange sums")},
      {!config.enable_memory_coalescing,
       cat("enable_memory_coalescing is False, but ", own,
           " have no variant in which neighbouring threads read far apart")}};
  const std::string obstacle = first_asked(rows);
  return obstacle.empty() ? registers_obstacle(config, device) : obstacle;
}

/// The simple kernel is the operator's own, which compiles as the others; the rest is cuDNN's.
std::string convolution_obstacle(const JitConfig& config, Device device,
                                 const KernelTraits& traits) {
  if (wants_simple(config)) return own_obstacle(config, device, traits);
  const AskedField rows[] = {
      {config.kernel_type != KernelType::kAuto,
       cat("kernel_type is '", name(config.kernel_type), "', but on ", device,
           " a convolution is cuDNN's, which chooses by itself, or the operator's own plain "
           "kernel: use 'auto' or 'simple'")},
      {!config.enable_tensor_core && traits.dtype == DType::kFloat64,
       cat("enable_tensor_core is False, but on ", device,
           " cuDNN may take matrix units for float64: kernel_type 'simple' does not")}};
  const std::string obstacle = first_asked(rows);
  return obstacle.empty() ? library_obstacle(config, device, "cuDNN") : obstacle;
}

std::string obstacle_on_gpu(const JitConfig& config, Device device, const KernelTraits& traits,
                            const backend::GpuLimits& limits) {
  switch (traits.gpu_kernels) {
    case GpuKernels::kOwn:
      return own_obstacle(config, device, traits);
    case GpuKernels::kCublasLt:
      return product_obstacle(config, device, traits.dtype, limits);
    case GpuKernels::kCudnn:
      return convolution_obstacle(config, device, traits);
  }
  return "";
}

[[noreturn]] void refuse(const char* who, const std::string& why) {
  throw CompilationError(cat(who, ": ", why));
}

void check_range(const char* who, const char* field, int64_t value, int64_t most) {
  if (value < 0 || value > most) {
    refuse(who, cat(field, " is ", value, ", allowed is 0 (chosen) to ", most));
  }
}

/// Of fields that describe a GPU, values that no GPU's kernels have.
void check_possible(const char* who, const JitConfig& config) {
  const int64_t block = config.block_size, registers = config.max_registers;
  if (block != 0 && (block < kLeastBlock || !std::has_single_bit(static_cast<uint64_t>(block)))) {
    refuse(who, cat("block_size is ", block, ", allowed is 0 (chosen) or a power of two from ",
                    kLeastBlock, " to ", kMostBlock));
  }
  if (registers != 0 && registers < jit::kFewestRegisters) {
    refuse(who, cat("max_registers is ", registers, ", allowed is 0 (no limit) or ",
                    jit::kFewestRegisters, " to ", jit::kMostRegisters));
  }
}

/// A tile keeps tile^2 / threads sums and two strips of operands in each thread, and the rest of
/// the kernel needs about 16 registers; what does not fit would spill to memory.
void check_registers(const char* who, const JitConfig& config) {
  if (config.max_registers == 0 || config.tile_size == 0) return;
  const int64_t threads = config.block_size != 0 ? config.block_size : 256;
  const double tile = static_cast<double>(config.tile_size);
  const auto sums = static_cast<int64_t>(std::ceil(tile * tile / static_cast<double>(threads)));
  const auto operands =
      static_cast<int64_t>(std::ceil(2.0 * tile / std::sqrt(static_cast<double>(threads))));
  const int64_t needed = sums + operands + 16;
  if (needed > config.max_registers) {
    refuse(who, cat("a ", config.tile_size, "-wide tile on ", threads, " threads needs about ",
                    needed, " registers a thread (", sums, " sums, ", operands,
                    " operands, 16 addresses); max_registers is ", config.max_registers));
  }
}

void check_level(const char* who, const JitConfig& config) {
  static constexpr std::string_view kLevels[] = {"O0", "O1", "O2", "O3", "auto", "fast", "best"};
  for (const std::string_view level : kLevels) {
    if (config.optimization_level != level) continue;
    if (level == "O0" && config.kernel_type == KernelType::kTiled) {
      refuse(who, "optimization_level 'O0' is the simple kernel, kernel_type asks for 'tiled'");
    }
    return;
  }
  refuse(who, cat("optimization_level '", config.optimization_level, "' is unknown; known are ",
                  join(kLevels)));
}

}  // namespace

void check_jit_config(const char* who, const JitConfig& config, Device device,
                      const KernelTraits& traits, const backend::GpuLimits& limits) {
  check_range(who, "tile_size", config.tile_size, 1024);
  check_range(who, "block_size", config.block_size, kMostBlock);
  check_range(who, "num_stages", config.num_stages, 8);
  check_range(who, "max_registers", config.max_registers, jit::kMostRegisters);
  check_level(who, config);
  if (device.is_cpu()) {  // what describes a GPU has no effect there
    check_possible(who, config);
    return;
  }
  check_registers(who, config);
  const std::string obstacle = obstacle_on_gpu(config, device, traits, limits);
  if (!obstacle.empty()) refuse(who, obstacle);
}

}  // namespace cuop
