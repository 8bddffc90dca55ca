// What a distributed call costs on this rank: always its times and bytes, in some tenths of a
// microsecond; while a trace is recorded a span with its plan, and the bytes to each rank.
#pragma once

#include <chrono>
#include <memory>
#include <string_view>
#include <vector>

#include "cuop/core/noncopyable.h"
#include "cuop/core/trace.h"
#include "cuop/dist/comm/communicator.h"
#include "cuop/dist/exec/planned.h"
#include "cuop/dist/plan/measured.h"

namespace cuop::dist {

/// From the beginning of the call to `file`.
class CallWatch {
 public:
  /// `text` is what a call is called that fails before it has a plan.
  CallWatch(Communicator& comm, std::string_view text);

  /// Stands around following the plan.
  class Work : NonCopyable {
   public:
    Work(CallWatch& watch, bool is_on_gpu);
    ~Work();

   private:
    CallWatch& watch_;
    int64_t sent_before_;
    double moves_before_;
    std::vector<int64_t> sent_to_before_;  // while a trace is recorded
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  };

  /// The call has succeeded: files its report, and what the trace is told.
  void file(const std::shared_ptr<const Planned>& made);

 private:
  Communicator& comm_;
  trace::Span span_;
  int64_t sent_before_;
  std::vector<int64_t> sent_to_;
  Measured measured_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace cuop::dist
