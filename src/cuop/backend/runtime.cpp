#include "cuop/backend/runtime.h"

#include <optional>

#include "cuop/backend/cpu/cpu_runtime.h"
#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/cuda_memory.h"
#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/default_device.h"
#include "cuop/memory/current.h"

namespace cuop::backend {

namespace {

thread_local std::optional<Device> chosen;

const bool offers_memory = [] {
  memory::set_resource_provider(DeviceType::kCuda, &cuda::cuda_memory, &cuda::current_cuda_memory);
  return true;
}();

}  // namespace

int device_count(DeviceType type) {
  return type == DeviceType::kCpu ? 1 : cuda::visible_device_count();
}

Runtime& runtime(Device device) {
  if (device.is_cpu()) return cpu_runtime();
  return cuda::cuda_runtime(device);
}

Device current_device() { return chosen ? *chosen : default_device().device; }

void set_current_device(Device device) {
  runtime(device);
  chosen = device;
}

}  // namespace cuop::backend
