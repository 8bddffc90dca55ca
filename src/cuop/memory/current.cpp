#include "cuop/memory/current.h"

#include <array>
#include <atomic>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/memory/host.h"

namespace cuop::memory {

namespace {

MemoryResource& host_resource(Device) {
  static HostResource* instance = new HostResource;  // tensors may outlive static destructors
  return *instance;
}

/// A device's choice; the CPU's stands apart from those of the GPUs.
std::atomic<MemoryResource*>& chosen(Device device) {
  static std::array<std::atomic<MemoryResource*>, kMaxDevices + 1> table{};
  return table.at(device.is_cpu() ? size_t{kMaxDevices} : static_cast<size_t>(device.index));
}

std::array<std::atomic<MemoryResource& (*)(Device)>, kDeviceTypeCount> providers{&host_resource,
                                                                                 nullptr};

/// The innermost scope of this thread, of any device.
thread_local ResourceScope* innermost = nullptr;

/// A block and the shared_ptr that returns it to its resource.
std::pair<void*, std::shared_ptr<void>> allocate_owned(int64_t nbytes, Device device) {
  MemoryResource& resource = current_resource(device);
  const Stream stream = current_stream(device);
  void* data = resource.allocate(nbytes, stream);
  std::shared_ptr<void> owner(data, [&resource, nbytes, stream](void* block) {
    resource.deallocate(block, nbytes, stream);
  });
  return {data, std::move(owner)};
}

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
  const auto provider = providers[static_cast<size_t>(device.type)].load();
  if (provider == nullptr) throw DeviceError(cat("memory: ", device, " has no memory resource"));
  return provider(device);
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
  auto [data, owner] = allocate_owned(nbytes, device);
  return std::make_shared<Storage>(data, nbytes, device, std::move(owner));
}

void fulfil_storage(Storage& storage) {
  auto [data, owner] = allocate_owned(storage.nbytes(), storage.device());
  storage.fulfil(data, std::move(owner));
}

}  // namespace cuop::memory
