#include "cuop/backend/runtime.h"

#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/cuda_memory.h"
#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/core/error.h"
#include "cuop/memory/current.h"

namespace cuop::backend {

namespace {

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

memory::MemoryResource& locked_memory(Device gpu) {
  if (gpu.is_cpu()) throw DeviceError("memory is locked for a GPU; given cpu");
  runtime(gpu);  // an absent device is said here, with the reason
  return cuda::pinned_memory(gpu);
}

std::shared_ptr<Storage> filled_storage(int64_t bytes, int byte, Stream stream) {
  auto storage = memory::allocate_storage(bytes, stream.device);
  runtime(stream.device).fill_bytes(storage->data(), byte, bytes, stream);
  return storage;
}

}  // namespace cuop::backend
