// How a thread's calls are to be run, where their caller wants it otherwise than usual: JIT
// wrappers, the tuner and tests do.
#pragma once

#include <cstdint>
#include <optional>

#include "cuop/backend/kernel.h"
#include "cuop/core/cache_directory.h"
#include "cuop/core/noncopyable.h"

namespace cuop::backend {

/// A GPU's matrix units (tensor cores). kForbidden and kRequired leave only those of a library's
/// algorithms that keep to it.
enum class MatrixUnits : uint8_t { kAllowed, kForbidden, kRequired };

/// How kernels are compiled; each way makes a binary of its own.
struct BuildOptions {
  int max_registers = 0;    ///< of a thread, jit::kFewestRegisters to kMostRegisters; 0: no limit
  int assembler_level = 3;  ///< of optimisation, 0 to 3
  bool is_unrolled = true;  ///< false: loops stay loops where the text asks to unroll them
  bool operator==(const BuildOptions&) const = default;
};

/// Memory of a GPU that saves time alone: what work may take of it.
struct SpareMemory {
  bool has_copies = true;  ///< parts of operands, and copies of them with longer rows
  bool has_steps = true;   ///< values between the steps of a kernel that is still being compiled
  /// Bytes of a library's workspace, at most, where it can do with less; none: as many as suit it.
  std::optional<int64_t> workspace = {};
  bool operator==(const SpareMemory&) const = default;
};

struct ExecutionOptions {
  Kernel kernel{};           ///< of operators that have several
  int most_threads = 0;      ///< of the CPU; 0: as many as the process may have
  bool is_baseline = false;  ///< loops of the CPU keep to the baseline instruction set
  MatrixUnits matrix_units = MatrixUnits::kAllowed;
  BuildOptions build{};
  CachePlace cache_place{};     ///< of what is compiled and chosen
  bool is_beside_work = false;  ///< copies of rows leave a GPU's multiprocessors to other streams
  SpareMemory spare{};
};

/// What this thread asks for.
const ExecutionOptions& execution_options();

/// The same with another part. A simple kernel has one thread and the baseline instruction set.
ExecutionOptions with_kernel(const Kernel& kernel);
ExecutionOptions with_build(const BuildOptions& build);
ExecutionOptions with_cache_place(CachePlace place);
ExecutionOptions beside_work();
ExecutionOptions with_spare(const SpareMemory& spare);

/// Asks for the options for the time of its life.
class ExecutionScope : NonCopyable {
 public:
  explicit ExecutionScope(ExecutionOptions options);
  ~ExecutionScope();

 private:
  const ExecutionOptions options_;
  const ExecutionOptions* const before_;
};

}  // namespace cuop::backend
