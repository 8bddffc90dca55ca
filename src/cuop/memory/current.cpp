#include "cuop/memory/current.h"

#include <atomic>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/memory/host.h"

namespace cuop::memory {

namespace {

MemoryResource& host_resource() {
  static HostResource* instance = new HostResource;  // tensors may outlive static destructors
  return *instance;
}

std::atomic<MemoryResource*> chosen_host = nullptr;

/// A block and the shared_ptr that returns it to its resource.
std::pair<void*, std::shared_ptr<void>> allocate_owned(int64_t nbytes, Device device) {
  MemoryResource& resource = current_resource(device);
  const Stream stream{device};
  void* data = resource.allocate(nbytes, stream);
  std::shared_ptr<void> owner(data, [&resource, nbytes, stream](void* block) {
    resource.deallocate(block, nbytes, stream);
  });
  return {data, std::move(owner)};
}

}  // namespace

MemoryResource& current_resource(Device device) {
  if (!device.is_cpu()) throw DeviceError(cat("memory: ", device, " has no memory resource"));
  MemoryResource* chosen = chosen_host;
  return chosen != nullptr ? *chosen : host_resource();
}

MemoryResource* set_current_resource(Device device, MemoryResource* resource) {
  MemoryResource* before = &current_resource(device);
  chosen_host = resource;
  return before;
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
