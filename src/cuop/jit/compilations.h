// The compilations that run. NVRTC's static objects go when the process ends: by then all have
// stopped, those of threads that nobody waits for too, and no other begins.
#pragma once

#include <atomic>
#include <string>

#include "cuop/core/fork_mutex.h"
#include "cuop/core/noncopyable.h"

namespace cuop::jit {

/// Of this process. What is registered for its end last is called first, and NVRTC makes some of
/// its objects while it compiles for the first time: so the end is registered when NVRTC was
/// opened, and again until it has compiled.
class Compilations final : ForkListed {
 public:
  /// The first call is made when NVRTC has been opened.
  static Compilations& instance();

  /// While it lives one more is running. CompilationError when the process ends.
  class Running : cuop::NonCopyable {
   public:
    explicit Running(const std::string& kernel) { instance().begin(kernel); }
    ~Running() { instance().finish(); }
  };

  /// What NVRTC asks from time to time while it compiles.
  bool should_stop();
  bool are_ending() const { return are_ending_; }
  void end() noexcept;

 private:
  Compilations();
  void begin(const std::string& kernel);
  void finish();

  /// A forked child has not the threads that compile.
  void renew() noexcept override { running_ = 0; }

  std::atomic<bool> are_ending_ = false, has_compiled_ = false;
  std::atomic<int> running_ = 0;
};

/// CompilationError for a kernel that is not compiled any more.
[[noreturn]] void throw_at_process_end(const std::string& kernel);

/// Stops what any thread compiles, waits for it and refuses what comes. Called when the process
/// ends; who ends before the process does may call it earlier.
void end_compiling() noexcept;

}  // namespace cuop::jit
