// The environment variables of the simulated GPU; CONTRIBUTING.md says what they are for.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace cuop::simulator {

inline int64_t number_in_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::atoll(text);
}

struct Settings {
  int64_t devices = number_in_environment("SIM_DEVICES", 1);
  /// Each operation of a stream begins up to so many microseconds late.
  int64_t delay_us = number_in_environment("SIM_DELAY_US", 0);
  /// What starting the driver and what making a device's context takes.
  int64_t start_ms = number_in_environment("SIM_START_MS", 0);
  /// Of the order of blocks and threads; the same for every run where it is not set.
  int64_t seed = number_in_environment("SIM_SEED", 0);
  /// Whether two threads that use the same memory without order end the launch.
  bool finds_races = number_in_environment("SIM_RACES", 0) != 0;
};

inline const Settings& settings() {
  static const Settings read;
  return read;
}

}  // namespace cuop::simulator
