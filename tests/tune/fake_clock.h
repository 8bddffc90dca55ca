// A clock on which time passes only when somebody says so.
#pragma once

#include "cuop/tune/clock.h"

namespace cuop::test {

class FakeClock final : public tune::Clock {
 public:
  double time_ms(const std::function<void()>& work) override {
    const double before = now_ms;
    work();
    return now_ms - before;
  }
  double seconds() override { return now_ms * 1e-3; }
  double now_ms = 0.0;
};

}  // namespace cuop::test
