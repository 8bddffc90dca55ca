#include "cuop/backend/cuda/awaited_devices.h"

#include "cuop/core/one_per_device.h"

namespace cuop::backend::cuda {

void AwaitedDevices::add(StreamHandle stream, Set devices) {
  if (devices == 0) return;
  const std::lock_guard lock(mutex_);
  Awaited& awaited = awaited_[stream];
  awaited.devices |= devices;
  awaited.serial = ++serial_;
}

AwaitedDevices::Awaited AwaitedDevices::of(StreamHandle stream) const {
  const std::lock_guard lock(mutex_);
  const auto found = awaited_.find(stream);
  return found == awaited_.end() ? Awaited{} : found->second;
}

void AwaitedDevices::settle(StreamHandle stream, const Awaited& then) {
  if (then.devices == 0) return;
  const std::lock_guard lock(mutex_);
  const auto found = awaited_.find(stream);
  if (found != awaited_.end() && found->second.serial == then.serial) awaited_.erase(found);
}

void AwaitedDevices::clear() {
  const std::lock_guard lock(mutex_);
  awaited_.clear();
}

AwaitedDevices& awaited_devices(Device device) {
  static OnePerDevice<AwaitedDevices> all;
  return all.get(device, [] { return new AwaitedDevices; });
}

}  // namespace cuop::backend::cuda
