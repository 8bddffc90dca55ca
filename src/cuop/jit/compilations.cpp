#include "cuop/jit/compilations.h"

#include <chrono>
#include <cstdlib>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::jit {

namespace {

/// A compiler that cannot be stopped is waited for, but no longer than this.
constexpr std::chrono::seconds kPatience{30};

void register_end() { std::atexit(end_compiling); }

}  // namespace

Compilations& Compilations::instance() {
  static auto* compilations = new Compilations;
  return *compilations;
}

Compilations::Compilations() { register_end(); }

bool Compilations::should_stop() {
  if (!has_compiled_) register_end();
  return are_ending_;
}

void Compilations::begin(const std::string& kernel) {
  const std::lock_guard lock(mutex_);
  if (are_ending_) throw_at_process_end(kernel);
  ++running_;
}

void Compilations::finish() {
  const std::lock_guard lock(mutex_);
  if (!has_compiled_.exchange(true)) register_end();
  if (--running_ == 0) none_runs_.notify_all();
}

void Compilations::end() noexcept {
  if (!process_.is_here()) return;  // a fork, without the threads that compile
  std::unique_lock lock(mutex_);
  are_ending_ = true;
  none_runs_.wait_for(lock, kPatience, [this] { return running_ == 0; });
}

void throw_at_process_end(const std::string& kernel) {
  throw CompilationError(cat("jit: ", kernel, " is not compiled: the process ends"));
}

void end_compiling() noexcept { Compilations::instance().end(); }

}  // namespace cuop::jit
