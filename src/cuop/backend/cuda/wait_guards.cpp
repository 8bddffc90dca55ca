#include "cuop/backend/cuda/wait_guards.h"

#include <utility>

#include "cuop/core/one_per_device.h"

namespace cuop::backend::cuda {

void WaitGuards::add(std::shared_ptr<WaitGuard> guard) {
  const std::lock_guard lock(mutex_);
  all_.push_back(std::move(guard));
  has_some_ = true;
}

void WaitGuards::remove(const WaitGuard* guard) {
  const std::lock_guard lock(mutex_);
  std::erase_if(all_, [guard](const auto& each) { return each.get() == guard; });
  has_some_ = !all_.empty();
}

void WaitGuards::check() {
  if (!has_some_) return;
  std::vector<std::shared_ptr<WaitGuard>> all;
  {
    const std::lock_guard lock(mutex_);
    all = all_;
  }
  for (const auto& guard : all) guard->check();  // which may remove itself
}

WaitGuards& wait_guards(Device device) {
  static OnePerDevice<WaitGuards> all;
  return all.get(device, [] { return new WaitGuards; });
}

}  // namespace cuop::backend::cuda
