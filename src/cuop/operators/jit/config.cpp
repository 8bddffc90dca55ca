#include "cuop/operators/jit/config.h"

#include <cmath>
#include <mutex>
#include <string_view>

#include "cuop/backend/cuda/blocking.h"
#include "cuop/core/cache_directory.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/jit/compile_service.h"
#include "cuop/operators/jit/device_config_internal.h"
#include "cuop/tune/choice_store.h"
#include "cuop/tune/database.h"

namespace cuop {

namespace {

using backend::KernelType;

constexpr double kMostSeconds = 1e8;  // three years; more would not fit the clock

struct Shared {
  std::mutex mutex;
  GlobalJitConfig config = default_global_jit_config();
};
Shared& shared() {
  static Shared* instance = new Shared;
  return *instance;
}

[[noreturn]] void refuse(const char* who, const std::string& why) {
  throw CompilationError(cat(who, ": ", why));
}

void check_range(const char* who, const char* field, int64_t value, int64_t most) {
  if (value < 0 || value > most) {
    refuse(who, cat(field, " is ", value, ", allowed is 0 (chosen) to ", most));
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

GlobalJitConfig default_global_jit_config() {
  GlobalJitConfig config;
  config.cache_dir = default_cache_directory();
  return config;
}

GlobalJitConfig global_jit_config() {
  const std::lock_guard lock(shared().mutex);
  return shared().config;
}

void set_global_jit_config(const GlobalJitConfig& config) {
  const char* const who = "set_global_jit_config";
  if (config.max_cache_size < 0) {
    refuse(who, cat("max_cache_size is ", config.max_cache_size, ", needed is 0 bytes or more"));
  }
  if (!(config.compilation_timeout > 0.0 && config.compilation_timeout <= kMostSeconds)) {
    refuse(who, cat("compilation_timeout is ", config.compilation_timeout,
                    ", needed is more than 0 and at most ", kMostSeconds, " seconds"));
  }
  if (config.max_compilation_threads < 1) {
    refuse(who, cat("max_compilation_threads is ", config.max_compilation_threads,
                    ", needed is 1 or more"));
  }
  if (config.cache_dir.empty()) {
    refuse(who, "cache_dir is empty; enable_caching=False switches the cache off");
  }
  const std::lock_guard lock(shared().mutex);
  const bool is_asked_for = config.cache_dir != shared().config.cache_dir &&
                            config.cache_dir != default_cache_directory();
  if (is_asked_for) {
    const std::string problem = tune::ChoiceStore(config.cache_dir, 0).make_directory();
    if (!problem.empty()) refuse(who, cat("cache_dir ", problem));
  }
  shared().config = config;
  jit::set_compile_settings({.is_caching = config.enable_caching,
                             .directory = jit::kernel_directory(config.cache_dir),
                             .max_bytes = config.max_cache_size,
                             .timeout = config.compilation_timeout,
                             .max_threads = config.max_compilation_threads,
                             .keeps_texts = config.enable_debug});
  backend::cuda::set_blocking(config.enable_debug);
  tune::set_database({.is_used = config.enable_caching,
                      .directory = config.cache_dir,
                      .max_bytes = config.max_cache_size});
}

void check_jit_config(const char* who, const JitConfig& config, Device device,
                      const KernelTraits& traits, const backend::GpuLimits& limits) {
  check_range(who, "tile_size", config.tile_size, 1024);
  check_range(who, "block_size", config.block_size, 1024);
  check_range(who, "num_stages", config.num_stages, 8);
  check_range(who, "max_registers", config.max_registers, 255);
  check_level(who, config);
  if (device.is_cpu()) return;  // what describes a GPU has no effect there
  check_registers(who, config);
  const std::string obstacle = detail::obstacle_on_gpu(config, device, traits, limits);
  if (!obstacle.empty()) refuse(who, obstacle);
}

}  // namespace cuop
