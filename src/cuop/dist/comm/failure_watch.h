// The failure rule of communicator.h over control messages.
//
// All ranks of a communicator are in the same epoch, a number that every message carries. A rank
// that fails sends "abort" with its epoch to all others, who notice it in their waits. `recover`
// sends "meet" to all, waits for everybody's and raises the epoch, so that whatever was under way
// before matches nothing any more. Example with ranks 0 1 2 in epoch 4: rank 1 aborts; 0 sees it in
// its wait and recovers (meet 5); 2 is computing; 1 recovers (meet 5); 2 sees the abort at its next
// operation, raises, recovers (meet 5): all three have three meets of 5 and go on in epoch 5. The
// abort of epoch 4 is old news should it come later.
//
// Before a rank gives up at a deadline it pings the others: all that wait somewhere answer where,
// and the silent ones are the missing ones.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "cuop/dist/comm/transport.h"

namespace cuop::dist {

class FailureWatch {
 public:
  /// With a parent, its failures are failures here and its recoveries recoveries.
  FailureWatch(std::shared_ptr<Transport> transport, std::shared_ptr<FailureWatch> parent);

  /// The number that separates messages before and after a recovery.
  int64_t epoch() const;
  /// What this rank waits in and for whom, for the answer to a ping; rank -1 for nothing.
  void set_activity(std::string_view op, int peer);

  /// Takes in the control messages that have arrived.
  void poll();
  /// CommunicationError when failed; `op` begins its text. Polls.
  void check(std::string_view op);
  /// Fails this communicator on all ranks and raises "op: rank 1 of 4 <what>".
  [[noreturn]] void fail(std::string_view op, int blamed, const std::string& what);
  /// The same for a wait for `peer` that lasted `seconds`; names the ranks that do not answer.
  [[noreturn]] void expire(std::string_view op, int peer, double seconds);

  void abort(const std::string& reason) noexcept;
  std::string failure();
  bool is_reported();
  void recover(double timeout);

 private:
  struct Failure {
    std::string text;
    int rank = -1;
    int64_t epoch = -1;  // it holds while this is the present epoch
  };

  bool is_failed() const { return failure_.epoch == epoch(); }
  void set_failure(std::string text, int blamed);
  void tell_others(ControlKind kind, int64_t epoch, int blamed, const std::string& text) noexcept;
  void take(const Control& message);
  void poll_recent();
  std::vector<int> silent_ranks();
  std::string where(std::string_view op) const;

  std::shared_ptr<Transport> transport_;
  std::shared_ptr<FailureWatch> parent_;
  int64_t recoveries_ = 0;
  Failure failure_;
  bool is_reported_ = false;
  std::vector<Control> early_aborts_;  // from ranks that have recovered before this one
  std::vector<int64_t> meets_;         // the latest recovery that each rank came to
  std::string_view activity_ = "nothing";
  int activity_peer_ = -1;
  int64_t enquiry_ = 0;
  std::vector<std::string> answers_;
};

}  // namespace cuop::dist
