#include "cuop/memory/current.h"

#include <array>
#include <atomic>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/memory/host_pool.h"
#include "cuop/memory/pool.h"

namespace cuop::memory {

namespace {

MemoryResource& host_resource(Device) { return default_host_resource(); }

/// A device's choice; the CPU's stands apart from those of the GPUs.
std::atomic<MemoryResource*>& chosen(Device device) {
  static std::array<std::atomic<MemoryResource*>, kMaxDevices + 1> table{};
  return table.at(device.is_cpu() ? size_t{kMaxDevices} : static_cast<size_t>(device.index));
}

std::array<std::atomic<MemoryResource& (*)(Device)>, kDeviceTypeCount> providers{&host_resource,
                                                                                 nullptr};

/// The innermost scope of this thread, of any device.
thread_local ResourceScope* innermost = nullptr;

/// Storage that gives its block back itself: one object of the host's heap, not two.
class OwningStorage final : public Storage {
 public:
  OwningStorage(int64_t nbytes, Device device, MemoryResource& resource, Stream stream)
      : Storage(resource.allocate(nbytes, stream), nbytes, device, nullptr),
        resource_(resource),
        stream_(stream) {}
  ~OwningStorage() { resource_.deallocate(data(), nbytes(), stream_); }
  OwningStorage(const OwningStorage&) = delete;
  OwningStorage& operator=(const OwningStorage&) = delete;

 private:
  MemoryResource& resource_;
  Stream stream_;
};

}  // namespace

ResourceScope::ResourceScope(MemoryResource& resource) : resource_(&resource), before_(innermost) {
  innermost = this;
}

ResourceScope::~ResourceScope() { innermost = before_; }

MemoryResource& current_resource(Device device) {
  for (const ResourceScope* scope = innermost; scope != nullptr; scope = scope->before_) {
    if (scope->resource_->device() == device) return *scope->resource_;
  }
  if (MemoryResource* resource = chosen(device)) return *resource;
  return device_resource(device);
}

MemoryResource& device_resource(Device device) {
  const auto provider = providers[static_cast<size_t>(device.type)].load();
  if (provider == nullptr) throw DeviceError(cat("memory: ", device, " has no memory resource"));
  return provider(device);
}

Pool& device_pool(Device device) {
  if (auto* pool = dynamic_cast<Pool*>(&device_resource(device))) return *pool;
  throw ExecutionError(
      cat("memory: ", device,
          " is not served by a pool, which this needs; see CUOP_HOST_ALLOCATOR and "
          "CUOP_CUDA_ALLOCATOR"));
}

MemoryResource* set_current_resource(Device device, MemoryResource* resource) {
  MemoryResource* before = &current_resource(device);
  chosen(device) = resource;
  return before;
}

void set_resource_provider(DeviceType type, MemoryResource& (*provider)(Device)) {
  providers[static_cast<size_t>(type)] = provider;
}

std::shared_ptr<Storage> allocate_storage(int64_t nbytes, Device device) {
  return std::make_shared<OwningStorage>(nbytes, device, current_resource(device),
                                         current_stream(device));
}

void record_stream(Storage& storage, Stream stream) {
  if (storage.is_deferred() || storage.nbytes() == 0) return;
  current_resource(storage.device()).record_stream(storage.data(), stream);
}

void fulfil_storage(Storage& storage) {
  auto memory = allocate_storage(storage.nbytes(), storage.device());
  void* data = memory->data();
  storage.fulfil(data, std::move(memory));
}

}  // namespace cuop::memory
