// Explicit fusion: inside a Fused scope elementwise operations, broadcasts, casts and trailing
// reductions are recorded and run as few passes over memory. A value is computed when the scope
// ends or when anything needs its elements; a value that nobody holds by then is never written.
// What is recorded reads its input arrays later: memory shared with other libraries must not be
// written by them before the scope ends (cuOP's own writers take care of it). What is recorded is
// work of the stream that was current then; call jit::flush_pending() before events mark that
// stream, others wait for it or a graph is captured.
#pragma once

#include <atomic>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuop/core/noncopyable.h"
#include "cuop/jit/reports.h"

namespace cuop {

/// While one lives, this thread records. Scopes nest; the outermost one runs the work.
class Fused : NonCopyable {
 public:
  Fused();
  /// As close(), but an error of that work is kept and thrown where a value of it is first used.
  ~Fused();
  /// Ends the scope and runs what is pending; throws what that throws.
  void close();
  /// Ends it on behalf of its thread, which may do anything meanwhile. What that has pending runs
  /// when a value of it is needed.
  void abandon() noexcept;

 private:
  std::shared_ptr<std::atomic<int>> depth_;  ///< of its thread; none once it is closed
};

/// The function with its body inside a Fused scope.
template <class Function>
auto fuse(Function function) {
  return [function = std::move(function)]<class... Arguments>(Arguments&&... arguments) {
    Fused scope;
    if constexpr (std::is_void_v<std::invoke_result_t<const Function&, Arguments...>>) {
      function(std::forward<Arguments>(arguments)...);
      scope.close();
    } else {
      auto result = function(std::forward<Arguments>(arguments)...);
      scope.close();
      return result;
    }
  };
}

/// Off: fused scopes run op by op through the same engine. The default is CUOP_KERNEL_FUSION.
void set_kernel_fusion(bool on);
bool kernel_fusion();

namespace jit {

/// Runs everything this thread has pending.
void flush_pending(const char* reason = "a flush was asked for");
}  // namespace jit

/// Runs `function` in a Fused scope and returns what was fused, group by group in the order of
/// their running.
template <class Function>
std::vector<jit::GroupReport> explain(Function&& function) {
  jit::Reports reports;
  Fused scope;
  [[maybe_unused]] const auto keep = [&] {
    if constexpr (std::is_void_v<std::invoke_result_t<Function>>) {
      std::forward<Function>(function)();
      return 0;
    } else {
      return std::forward<Function>(function)();  // held, so that its values are written
    }
  }();
  scope.close();
  return reports.groups();
}

}  // namespace cuop
