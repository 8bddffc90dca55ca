// The way from a source to a binary: the cache on disk, else the compiler, on a bounded number of
// threads.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "cuop/jit/disk_cache.h"
#include "cuop/jit/nvrtc.h"

namespace cuop::jit {

/// Of the process.
struct CompileSettings {
  bool is_caching = true;  ///< on disk
  std::string directory;   ///< of the cache; "" for that of the default cache directory
  int64_t max_bytes = int64_t{1} << 30;
  double timeout = 30.0;  ///< seconds for one kernel, waiting for a turn included
  int max_threads = 4;    ///< that compile at a time
  /// Beside every kernel in the cache its source, "<key>.cu", and what the compiler said of it,
  /// "<key>.log", whether or not it compiled.
  bool keeps_texts = false;
};
CompileSettings compile_settings();
/// Where below a cache directory the kernels lie.
std::string kernel_directory(const std::string& cache_directory);
/// CompilationError when a value makes no sense.
void set_compile_settings(const CompileSettings& settings);

struct CompileStatistics {
  int running = 0;  ///< threads that compile now
  int64_t compilations = 0;
  int64_t disk_hits = 0;
  int64_t damaged_entries = 0;
  double compile_ms = 0.0;  ///< of the compilations
  double saved_ms = 0.0;    ///< what the hits would have cost
};
CompileStatistics compile_statistics();

/// The cache on disk as the settings say.
std::shared_ptr<DiskCache> kernel_disk_cache();

/// The binary of the request, from disk or from the compiler; waits while as many threads compile
/// as may. Kept where this thread asks for (backend/execution.h). Errors as Nvrtc::compile;
/// CompilationError too when its turn does not come in time, or when the thread's own time is over
/// (core/deadline.h).
CompiledKernel compile_kernel(const CompileRequest& request);
/// The binary from the cache on disk alone; nothing when it has none.
std::optional<CompiledKernel> find_compiled(const CompileRequest& request);
/// The binary of the request on a thread of the pool, which has the whole time for it; errors are
/// kept in the future.
std::shared_future<CompiledKernel> compile_in_background(CompileRequest request);

/// The name of the architecture that binaries for a device of this compute capability are made for:
/// 9, 0 is "sm_90a". CompilationError when the compiler does not know it.
std::string architecture_of(int major, int minor);
/// CompilationError, which names the kernel, for an architecture that has no binaries or that the
/// compiler does not know.
void check_architecture(const std::string& kernel, const std::string& arch);

}  // namespace cuop::jit
