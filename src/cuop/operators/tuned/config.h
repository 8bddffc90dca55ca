// How JIT wrappers choose and run kernels. Every field changes what is run on a GPU, or is refused
// there with the reason. On the CPU what describes a GPU has no effect, and profile, explanation
// and a warning say so (no_effect.h): one configuration serves both.
#pragma once

#include <cstdint>
#include <string>

#include "cuop/backend/kernel.h"
#include "cuop/core/device.h"
#include "cuop/core/dtype.h"
#include "cuop/operators/task.h"

namespace cuop {

/// Of one wrapper. On the CPU kernels are compiled ahead of time: what is "compiled" there is the
/// choice among them. On a GPU kernels of the operator's own (GpuKernels::kOwn, those of products,
/// and the simple one of convolutions) are compiled as the fields say; a library's serves where the
/// fields ask nothing of how kernels are compiled. Defaults are allowed everywhere; what a GPU
/// cannot give is refused, and what describes a GPU has no effect on the CPU.
struct JitConfig {
  bool enable_jit = true;  ///< false: the operator's own kernel, no choosing
  /// On a GPU "simple" is the operator's own kernel without optimisation, and "tensor_core" a
  /// product on matrix units: in double precision, or of float32 in three products of tf32, whose
  /// error is about that of float32 sums.
  backend::KernelType kernel_type = backend::KernelType::kAuto;
  int64_t tile_size = 0;  ///< edge of the tile of products, which are then tiled; 0: chosen
  /// Threads of a GPU's block: of products a power of two from 32 on, of the operator's own kernels
  /// 128, 256, 512 or 1024; 0: chosen.
  int64_t block_size = 0;
  /// Steps of the depth that a GPU's products have in shared memory at a time; 0: chosen.
  int64_t num_stages = 0;
  /// "O0": the simple kernel. "O1", "O2", "fast": the operator's rule, nothing is measured. "O3",
  /// "auto": measured when auto-tuning is on. "best": always measured, with more repetitions. There
  /// is something to measure while neither kernel_type nor tile_size has settled the matter. "O1"
  /// and "O2" are also what the assembler is told for a GPU kernel of the operator's own.
  std::string optimization_level = "auto";
  bool enable_tensor_core = true;  ///< a permission; false leaves algorithms without matrix units
  bool enable_tma = false;         ///< True: products whose rows a GPU's copy engine brings
  int64_t max_registers = 0;  ///< of a thread of a GPU kernel of the operator's own; 0: no limit
  bool enable_shared_memory_opt = true;  ///< False: the simple kernel of products, without
  bool enable_loop_unroll = true;        ///< false: in GPU kernels of the operator's own
  /// False: the simple kernel of products, whose neighbouring threads then read far apart.
  bool enable_memory_coalescing = true;
  bool operator==(const JitConfig&) const = default;
};

/// Of the process.
struct GlobalJitConfig {
  bool enable_jit = true;          ///< false: every wrapper runs its operator's own kernel
  bool enable_auto_tuning = true;  ///< false: 'auto' follows the operator's rule
  bool enable_caching = true;      ///< false: every call chooses anew
  std::string cache_dir;           ///< of wrappers without a directory of their own
  int64_t max_cache_size = int64_t{1} << 30;  ///< bytes; the least recently used go first
  /// Seconds for choosing one kernel, waiting for a turn included. Candidates that are not reached
  /// do not win, and a choice made without them is not kept on disk.
  double compilation_timeout = 30.0;
  int max_compilation_threads = 4;  ///< threads that may choose kernels at a time; others wait
  /// Writes a log of every choice into the cache directory (what was measured, and why a candidate
  /// was out) and, beside every kernel that is compiled, its source and the compiler's log; waits
  /// for every launch on a GPU, so that an error is its own; and compares every result with the
  /// simple kernel's, on a GPU with the CPU's: ExecutionError where they disagree. While a graph
  /// is captured nothing can be waited for or compared.
  bool enable_debug = false;
  bool operator==(const GlobalJitConfig&) const = default;
};

/// The defaults; cache_dir is CUOP_CACHE_DIR or the user's cache directory.
GlobalJitConfig default_global_jit_config();
GlobalJitConfig global_jit_config();
/// CompilationError when a value makes no sense, or a new cache_dir can be neither made nor written
/// to. One that other users can write to is not used: choices then stay in memory, with a warning.
void set_global_jit_config(const GlobalJitConfig& config);

}  // namespace cuop
