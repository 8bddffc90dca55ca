// Explicit fusion: inside a Fused scope elementwise operations, broadcasts, casts and trailing
// reductions are recorded and run as few passes over memory. A value is computed when the scope
// ends or when anything needs its elements; a value that nobody holds by then is never written.
// What is recorded reads its input arrays later: memory shared with other libraries must not be
// written by them before the scope ends (cuOP's own writers take care of it). What is recorded is
// work of the stream that was current then; call jit::flush_pending() before events mark that
// stream, others wait for it or a graph is captured.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cuop/jit/group.h"

namespace cuop {

/// While one lives, this thread records. Scopes nest; the outermost one runs the work.
class Fused {
 public:
  Fused();
  /// As close(), but an error of that work is kept and thrown where a value of it is first used.
  ~Fused();
  Fused(const Fused&) = delete;
  Fused& operator=(const Fused&) = delete;
  /// Ends the scope and runs what is pending; throws what that throws.
  void close();

 private:
  bool is_open_ = true;
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

/// True inside a Fused scope of this thread with fusion on.
bool is_recording();

/// An operand as its operator got it: exactly one of the two is set.
struct Argument {
  const Tensor* tensor = nullptr;
  const Scalar* number = nullptr;
};

/// Records an operation whose checks have passed; the tensor answered is computed later. Only while
/// recording.
Tensor record_op(int code, OpTypes types, const Shape& shape, Device device,
                 std::span<const Argument> arguments);
/// The same for a conversion; nothing when not recording or when the tensor is not pending (its
/// conversion alone would gain nothing).
std::optional<Tensor> record_cast(const Tensor& tensor, DType dtype);
/// For the reduction operators to call first, after their checks: takes over a reduction of a
/// pending value over trailing axes (ascending, normalised) and answers its deferred result of
/// dtype `result`. Nothing when not recording or when it is not of that form.
std::optional<Tensor> record_reduction(ReduceKind kind, const Tensor& tensor,
                                       std::span<const int> axes, bool keepdims, DType result);

/// Runs everything this thread has pending.
void flush_pending(const char* reason = "a flush was asked for");
/// For every operator that writes to memory that exists: runs first what still has to read it.
void before_write(const Tensor& written);

/// Runs a group and files its report with the `Reports` of the calling thread.
void run_group(Group& group, const char* reason);

/// While one lives, the reports of the groups that this thread runs are collected in it.
class Reports {
 public:
  Reports();
  ~Reports();
  Reports(const Reports&) = delete;
  Reports& operator=(const Reports&) = delete;
  const std::vector<GroupReport>& groups() const { return groups_; }
  /// What `note` was told: a line for each call of a JIT wrapper.
  const std::vector<std::string>& notes() const { return notes_; }
  void add(GroupReport report) { groups_.push_back(std::move(report)); }
  void add_note(std::string text) { notes_.push_back(std::move(text)); }

 private:
  std::vector<GroupReport> groups_;
  std::vector<std::string> notes_;
  Reports* before_;
};

/// Whether this thread has a `Reports`, and a line for it.
bool is_reporting();
void note(std::string text);

}  // namespace jit

/// Runs `function` in a Fused scope and answers what was fused, group by group in the order of
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

/// The reports as text: one paragraph a group and a line of totals.
std::string to_text(const std::vector<jit::GroupReport>& groups);

}  // namespace cuop
