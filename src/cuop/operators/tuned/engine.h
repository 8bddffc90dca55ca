// What all JIT wrappers have in common: configuration, choice of the kernel, profile, statistics.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cuop/core/cache_directory.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/operators/task.h"
#include "cuop/operators/tuned/config_check.h"
#include "cuop/operators/tuned/no_effect.h"
#include "cuop/operators/tuned/profile.h"
#include "cuop/tune/search.h"

namespace cuop {

struct ChoiceRequest;
struct ChosenKernel;
namespace backend {
struct ExecutionOptions;
}
namespace jit {
struct CompileStatistics;
}
namespace tune {
class ChoiceStore;
}

struct JitStatistics {
  int64_t compilations = 0;  ///< of kernels, during calls; on the CPU, which compiles none, choices
                             ///< that no cache had
  int64_t cache_hits = 0;    ///< of calls: remembered by the process or on disk
  int64_t cache_misses = 0;
  int64_t persistent_cache_hits = 0;  ///< those of cache_hits that came from disk
  int64_t damaged_entries = 0;        ///< files of the persistent cache that could not be used
  double compilation_time_ms = 0.0;   ///< of all compilations
  double time_saved_ms = 0.0;         ///< what the hits would have cost as compilations
};

/// How a wrapper came to the kernel of its last call.
struct TuningReport {
  std::string source;       ///< "measured", "memory", "disk", "put off"; "" before the first call
  std::string kernel;       ///< as in PerformanceProfile
  double gain = 0.0;        ///< part of the default kernel's time that the choice saves
  double made_in_ms = 0.0;  ///< what finding it cost
  std::string text;         ///< what was measured when it was found, one line a candidate
  /// Each candidate with its time, or with the reason why it was not measured to the end.
  std::vector<tune::Measurement> candidates;
};

class JitEngine {
 public:
  JitEngine(std::string who, const KernelTraits& traits) : who_(std::move(who)), traits_(traits) {}

  void enable_jit(bool is_on);
  /// On, what calls choose and compile is kept on disk for the next process. Off, the default, they
  /// read what is there and write nothing.
  void enable_persistent_cache(bool is_on);
  /// Where that is; the process's cache directory otherwise. It is made while the cache is on, here
  /// or when it is switched on; ExecutionError when it cannot be made or written to. One that other
  /// users can write to is not used: a warning says so, and choices stay in memory.
  void set_persistent_cache_directory(const std::string& path);
  /// CompilationError when it cannot be met on the current device. The device of a call decides
  /// again, with the same error. Warns of fields that have no effect on the device (no_effect.h).
  void set_config(const JitConfig& config);
  JitConfig config() const;

  Tensor run(const Task& task);
  /// Chooses the kernel and runs it once on an output of its own.
  void warm_up(const Task& task);
  /// Opens the libraries and starts the threads.
  void warm_up() const;

  /// Of the last call; on a GPU waits for its kernel. Zeros before the first.
  PerformanceProfile profile() const;
  JitStatistics statistics() const;
  TuningReport tuning_report() const;

 private:
  struct Decision {
    Kernel kernel;
    double compilation_ms = 0.0;  ///< when it was chosen
    double choosing_ms = 0.0;     ///< in this call, unless it was remembered
    bool is_debug = false;
  };
  Decision decide(const Task& task, const JitConfig& config);
  /// The configuration for the task's device; CompilationError when that cannot meet it.
  JitConfig config_for(const Task& task) const;
  /// How the task's kernels are chosen, compiled and kept.
  backend::ExecutionOptions options_for(const Task& task, const JitConfig& config) const;
  /// What of it has no effect there.
  std::vector<std::string> no_effect() const;
  ChoiceRequest request_for(const Task& task, const JitConfig& config,
                            const GlobalJitConfig& global) const;
  bool is_persistent() const;
  /// Where this wrapper's calls keep what they choose and compile.
  CachePlace place() const;
  void make_directory(const std::string& path) const;
  /// The store of choices or, in debug mode, of logs alone; null where neither is kept.
  std::shared_ptr<tune::ChoiceStore> store_for(const GlobalJitConfig& global);
  void count(const ChosenKernel& chosen, Device device);
  /// What any thread has compiled in between.
  void count_compiled(const jit::CompileStatistics& before, const jit::CompileStatistics& now);

  const std::string who_;
  const KernelTraits traits_;

  mutable ForkMutex mutex_;
  JitConfig config_;
  /// The device whose check config_ has passed last, and what has no effect there.
  struct Checked {
    Device device;
    std::vector<NoEffect> no_effect;
  };
  mutable std::optional<Checked> checked_;
  bool is_persistent_ = false;
  std::string directory_;
  std::shared_ptr<tune::ChoiceStore> store_;
  int64_t store_limit_ = 0;
  int64_t damaged_before_ = 0;  ///< of stores that were replaced
  JitStatistics statistics_;
  CallRecord last_call_;
  TuningReport report_;
};

/// Forgets the process's choices and removes those in the global cache directory; returns how many
/// choices were forgotten or removed.
int64_t clear_kernel_cache();

}  // namespace cuop
