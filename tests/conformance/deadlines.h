// Deadlines of cases about ranks that fail or are late.
#pragma once

#include <chrono>
#include <thread>

#include "tests/conformance/communicator_suite.h"

namespace cuop::dist::conformance {

inline constexpr double kLong = 20.0;  // seconds: a deadline that no passing test reaches

/// A case's own deadline, undone at its end.
class Timeout {
 public:
  Timeout(Rank comm, double seconds) : comm_(*comm), before_(comm->timeout()) {
    comm_.set_timeout(seconds);
  }
  ~Timeout() { comm_.set_timeout(before_); }

 private:
  Communicator& comm_;
  double before_;
};

inline void pause(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

}  // namespace cuop::dist::conformance
