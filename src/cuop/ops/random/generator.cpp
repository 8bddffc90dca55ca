#include "cuop/ops/random/generator.h"

#include <random>

namespace cuop {

Generator::Ticket Generator::take(uint64_t blocks) {
  const std::lock_guard lock(mutex_);
  const Ticket ticket{seed_, counter_};
  counter_ += blocks;
  return ticket;
}

void Generator::manual_seed(uint64_t seed) {
  const std::lock_guard lock(mutex_);
  seed_ = seed;
  counter_ = 0;
}

uint64_t Generator::seed() const {
  const std::lock_guard lock(mutex_);
  return seed_;
}

uint64_t Generator::counter() const {
  const std::lock_guard lock(mutex_);
  return counter_;
}

void Generator::set_counter(uint64_t counter) {
  const std::lock_guard lock(mutex_);
  counter_ = counter;
}

Generator& default_generator() {
  static Generator* generator = [] {
    std::random_device system;
    const uint64_t high = system();
    return new Generator((high << 32) | system());
  }();
  return *generator;
}

void manual_seed(uint64_t seed) { default_generator().manual_seed(seed); }

}  // namespace cuop
