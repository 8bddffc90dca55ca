// What the tuner measures with. An interface, so that the search is tested without a machine.
#pragma once

#include <functional>
#include <memory>

#include "cuop/core/stream.h"

namespace cuop::tune {

class Clock {
 public:
  virtual ~Clock() = default;
  /// Does the work and returns how long it took, in ms, once it is complete.
  virtual double time_ms(const std::function<void()>& work) = 0;
  /// Seconds since a fixed moment: what the search itself costs.
  virtual double seconds() = 0;
};

/// The host's steady clock, for work that is done when its call returns.
class HostClock final : public Clock {
 public:
  double time_ms(const std::function<void()>& work) override;
  double seconds() override;
};

/// Two events of a stream around the work that it is given; waits for the second.
class EventClock final : public Clock {
 public:
  explicit EventClock(Stream stream) : stream_(stream) {}
  double time_ms(const std::function<void()>& work) override;
  double seconds() override { return host_.seconds(); }

 private:
  Stream stream_;
  HostClock host_;
};

/// The clock for work on this thread's current stream of the device.
std::unique_ptr<Clock> clock_for(Device device);

}  // namespace cuop::tune
