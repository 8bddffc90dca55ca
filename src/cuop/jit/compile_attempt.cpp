#include "cuop/jit/compile_attempt.h"

#include <thread>
#include <utility>

#include "cuop/core/interrupt.h"

namespace cuop::jit {

void CompileAttempt::start(Compile compile, Late late) {
  std::thread([self = shared_from_this(), compile = std::move(compile), late = std::move(late)] {
    self->run(compile, late);
  }).detach();
}

void CompileAttempt::run(const Compile& compile, const Late& late) {
  std::optional<CompiledKernel> compiled;
  std::exception_ptr error;
  try {
    compiled = compile();
  } catch (...) {
    error = std::current_exception();
  }
  std::unique_lock lock(mutex_);
  if (is_left_) {
    lock.unlock();
    if (compiled) late(*compiled);
    return;
  }
  compiled_ = std::move(compiled);
  error_ = std::move(error);  // this thread keeps no part in what the caller throws
  ended_.notify_one();
}

std::optional<CompiledKernel> CompileAttempt::wait(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  struct Leave {  // with the lock held, also by an interrupt
    bool& is_left;
    ~Leave() { is_left = true; }
  } const leave{is_left_};
  wait_interruptibly(ended_, lock, deadline, [this] { return compiled_ || error_; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  return std::move(compiled_);
}

}  // namespace cuop::jit
