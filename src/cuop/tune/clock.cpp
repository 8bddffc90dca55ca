#include "cuop/tune/clock.h"

#include <chrono>

#include "cuop/backend/runtime.h"

namespace cuop::tune {

double HostClock::seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

double HostClock::time_ms(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  const auto took = std::chrono::steady_clock::now() - start;
  return std::chrono::duration<double, std::milli>(took).count();
}

double EventClock::time_ms(const std::function<void()>& work) {
  backend::Runtime& runtime = backend::runtime(stream_.device);
  const auto begin = runtime.create_event(true), end = runtime.create_event(true);
  begin->record(stream_);
  work();
  end->record(stream_);
  end->synchronize();
  return end->elapsed_ms(*begin);
}

std::unique_ptr<Clock> clock_for(Device device) {
  if (device.is_cpu()) return std::make_unique<HostClock>();
  return std::make_unique<EventClock>(current_stream(device));
}

}  // namespace cuop::tune
