#include "cuop/backend/cuda/context.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include "cuop/backend/cpu/apart.h"
#include "cuop/backend/cpu/exit_gate.h"
#include "cuop/core/error.h"
#include "cuop/core/interruptible.h"

namespace cuop::backend::cuda {

namespace {

/// Takes a quarter of a second, and seconds where many processes start at once.
ContextHandle retain(Device device) {
  const auto context = std::make_shared<ContextHandle>();
  run_apart([device, context] {
    const GatedCall call;
    const Driver& d = driver();
    DeviceId id = 0;
    check(d.device_get(&id, device.index), device);
    check(d.device_primary_ctx_retain(context.get(), id), device, ": making its primary context");
  });
  return *context;
}

}  // namespace

int visible_device_count() {
  static const int count = [] {
    int found = 0;
    if (const Driver* d = find_driver()) check(d->device_get_count(&found), "cuda: device count");
    return std::min(found, kMaxDevices);
  }();
  return count;
}

std::string absence_of(Device device) {
  if (!driver_absence().empty()) return driver_absence();
  const int count = visible_device_count();
  if (device.index < count) return "";
  return cat("the NVIDIA driver shows ", count, " to this process, numbered from 0",
             "; use one of them or device 'cpu'");
}

ContextHandle primary_context(Device device) {
  static std::array<std::atomic<ContextHandle>, kMaxDevices> contexts{};
  static InterruptibleMutex mutex("cuda: making a primary context");
  if (device.index < kMaxDevices) {
    const ContextHandle known = contexts[static_cast<size_t>(device.index)];
    if (known != nullptr) [[likely]]
      return known;
  }
  if (const std::string reason = absence_of(device); !reason.empty()) {
    throw DeviceError(cat("device: ", device, " is not available: ", reason));
  }
  const std::lock_guard lock(mutex);
  std::atomic<ContextHandle>& context = contexts[static_cast<size_t>(device.index)];
  if (context == nullptr) context = retain(device);
  return context;
}

ContextScope::ContextScope(Device device) {
  const ContextHandle wanted = primary_context(device);
  const Driver& d = driver();
  check(d.ctx_get_current(&before_), device);
  if (before_ == wanted) return;
  check(d.ctx_set_current(wanted), device);
  // A thread without a context may keep that of device 0, which the CUDA runtime would give it.
  is_changed_ = before_ != nullptr || device.index != 0;
}

ContextScope::~ContextScope() {
  if (is_changed_) driver().ctx_set_current(before_);
}

}  // namespace cuop::backend::cuda
