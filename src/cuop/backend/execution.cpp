#include "cuop/backend/execution.h"

#include <utility>

namespace cuop::backend {

namespace {
thread_local const ExecutionOptions* asked = nullptr;  // null: as usual
}

const ExecutionOptions& execution_options() {
  // Never destroyed: threads may compute while the process ends.
  static const ExecutionOptions& usual = *new ExecutionOptions;
  return asked != nullptr ? *asked : usual;
}

ExecutionOptions with_kernel(const Kernel& kernel) {
  ExecutionOptions options = execution_options();
  options.kernel = kernel;
  options.is_baseline = kernel.type == KernelType::kSimple;
  options.most_threads = options.is_baseline ? 1 : 0;
  return options;
}

ExecutionOptions with_build(const BuildOptions& build) {
  ExecutionOptions options = execution_options();
  options.build = build;
  return options;
}

ExecutionOptions with_cache_place(CachePlace place) {
  ExecutionOptions options = execution_options();
  options.cache_place = std::move(place);
  return options;
}

ExecutionOptions beside_work() {
  ExecutionOptions options = execution_options();
  options.is_beside_work = true;
  return options;
}

ExecutionOptions with_spare(const SpareMemory& spare) {
  ExecutionOptions options = execution_options();
  options.spare = spare;
  return options;
}

ExecutionScope::ExecutionScope(ExecutionOptions options)
    : options_(std::move(options)), before_(asked) {
  asked = &options_;
}
ExecutionScope::~ExecutionScope() { asked = before_; }

}  // namespace cuop::backend
