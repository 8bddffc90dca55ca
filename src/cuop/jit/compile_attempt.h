// One compilation on a thread of its own, whose caller may leave before it ends.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "cuop/jit/nvrtc.h"

namespace cuop::jit {

class CompileAttempt : public std::enable_shared_from_this<CompileAttempt> {
 public:
  using Compile = std::function<CompiledKernel()>;
  using Late = std::function<void(const CompiledKernel&)>;

  /// Begins; what comes after the caller has left is given to `late`. std::system_error when there
  /// is no thread for it.
  void start(Compile compile, Late late);
  /// Returns what `compile` returned or throws its error; nothing when it is not done by the
  /// deadline. Also an interrupt ends the wait. To be called once.
  std::optional<CompiledKernel> wait(std::chrono::steady_clock::time_point deadline);

 private:
  void run(const Compile& compile, const Late& late);

  std::mutex mutex_;
  std::condition_variable ended_;
  std::optional<CompiledKernel> compiled_;
  std::exception_ptr error_;
  bool is_left_ = false;
};

}  // namespace cuop::jit
