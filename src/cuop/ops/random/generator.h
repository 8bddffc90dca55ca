// The state of a stream of random numbers: a seed and how many counter values are used up. Values
// depend on seed and call order only, never on threads or device.
#pragma once

#include <cstdint>

#include "cuop/core/fork_mutex.h"

namespace cuop {

class Generator {
 public:
  explicit Generator(uint64_t seed) : seed_(seed) {}

  /// What one call draws from: the seed and the first of its counter values.
  struct Ticket {
    uint64_t seed = 0;
    uint64_t counter = 0;
  };
  /// Takes `blocks` counter values (four 32-bit words each). Thread-safe.
  Ticket take(uint64_t blocks);

  /// Starts the stream of `seed` from its beginning.
  void manual_seed(uint64_t seed);
  uint64_t seed() const;
  /// Counter values used so far; setting it resumes a saved stream.
  uint64_t counter() const;
  void set_counter(uint64_t counter);

 private:
  mutable ForkMutex mutex_;
  uint64_t seed_;
  uint64_t counter_ = 0;
};

/// The process's generator; seeded from the system until `manual_seed` is called.
Generator& default_generator();
/// Restarts the process's generator with this seed.
void manual_seed(uint64_t seed);

}  // namespace cuop
