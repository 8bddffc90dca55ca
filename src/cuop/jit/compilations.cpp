#include "cuop/jit/compilations.h"

#include <chrono>
#include <cstdlib>
#include <thread>

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

Compilations::Compilations() {
  enlist();
  register_end();
}

bool Compilations::should_stop() {
  if (!has_compiled_) register_end();
  return are_ending_;
}

void Compilations::begin(const std::string& kernel) {
  ++running_;  // before it looks: the end looks for it after it has said so
  if (!are_ending_) return;
  --running_;
  throw_at_process_end(kernel);
}

void Compilations::finish() {
  if (!has_compiled_.exchange(true)) register_end();
  --running_;
}

void Compilations::end() noexcept {
  are_ending_ = true;
  const auto patience = std::chrono::steady_clock::now() + kPatience;
  while (running_ > 0 && std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void throw_at_process_end(const std::string& kernel) {
  throw CompilationError(cat("jit: ", kernel, " is not compiled: the process ends"));
}

void end_compiling() noexcept { Compilations::instance().end(); }

}  // namespace cuop::jit
