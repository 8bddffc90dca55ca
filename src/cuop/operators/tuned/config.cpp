#include "cuop/operators/tuned/config.h"

#include <mutex>

#include "cuop/backend/cuda/operation.h"
#include "cuop/core/cache_directory.h"
#include "cuop/core/error.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/text.h"
#include "cuop/jit/compile_service.h"
#include "cuop/tune/choice_store.h"
#include "cuop/tune/database.h"

namespace cuop {

namespace {

constexpr double kMostSeconds = 1e8;  // three years; more would not fit the clock

struct Shared {
  ForkMutex mutex;
  GlobalJitConfig config = default_global_jit_config();
};
Shared& shared() {
  static Shared* instance = new Shared;
  return *instance;
}

[[noreturn]] void refuse(const std::string& why) {
  throw CompilationError(cat("set_global_jit_config: ", why));
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
  if (config.max_cache_size < 0) {
    refuse(cat("max_cache_size is ", config.max_cache_size, ", needed is 0 bytes or more"));
  }
  if (!(config.compilation_timeout > 0.0 && config.compilation_timeout <= kMostSeconds)) {
    refuse(cat("compilation_timeout is ", config.compilation_timeout,
               ", needed is more than 0 and at most ", kMostSeconds, " seconds"));
  }
  if (config.max_compilation_threads < 1) {
    refuse(cat("max_compilation_threads is ", config.max_compilation_threads,
               ", needed is 1 or more"));
  }
  if (config.cache_dir.empty()) {
    refuse("cache_dir is empty; enable_caching=False switches the cache off");
  }
  const std::lock_guard lock(shared().mutex);
  const bool is_asked_for = config.cache_dir != shared().config.cache_dir &&
                            config.cache_dir != default_cache_directory();
  if (is_asked_for) {
    const std::string problem = tune::ChoiceStore(config.cache_dir, 0).make_directory();
    if (!problem.empty()) refuse(cat("cache_dir ", problem));
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

}  // namespace cuop
