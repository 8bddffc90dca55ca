#include "cuop/memory/current.h"

#include <array>
#include <atomic>
#include <mutex>
#include <unordered_map>

#include "cuop/core/error.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/text.h"
#include "cuop/memory/host.h"
#include "cuop/memory/pool.h"

namespace cuop::memory {

namespace {

MemoryResource& host_resource(Device) { return default_host_resource(); }

/// A device's choice; the CPU's stands apart from those of the GPUs.
std::atomic<MemoryResource*>& chosen(Device device) {
  static std::array<std::atomic<MemoryResource*>, kMaxDevices + 1> table{};
  return table.at(device.is_cpu() ? size_t{kMaxDevices} : static_cast<size_t>(device.index));
}

using Providers = std::array<std::atomic<ResourceProvider>, kDeviceTypeCount>;
Providers providers{&host_resource, nullptr}, current_providers{&host_resource, nullptr};

MemoryResource& ask(const Providers& table, Device device) {
  const ResourceProvider provider = table[static_cast<size_t>(device.type)].load();
  if (provider == nullptr) throw DeviceError(cat("memory: ", device, " has no memory resource"));
  return provider(device);
}
/// Where tensors come from while nothing was chosen.
MemoryResource& unchosen(Device device) { return ask(current_providers, device); }

/// The innermost scope of this thread, of any device.
thread_local ResourceScope* innermost = nullptr;

/// A resource, and whether it was chosen: it is not the device's own then.
struct Choice {
  MemoryResource& resource;
  bool is_chosen = false;
};

/// Which blocks of live storage came from chosen resources (a graph's, a guard), so that all others
/// need not say where they came from.
class Origins {
 public:
  static Origins& instance() {
    static auto* made = new Origins;  // tensors may outlive static destructors
    return *made;
  }
  void add(const void* data, MemoryResource& resource) {
    const std::lock_guard lock(mutex_);
    resources_[data] = &resource;
  }
  void remove(const void* data) {
    const std::lock_guard lock(mutex_);
    resources_.erase(data);
  }
  /// Null when the block came from the device's own resource.
  MemoryResource* find(const void* data) {
    const std::lock_guard lock(mutex_);
    const auto entry = resources_.find(data);
    return entry == resources_.end() ? nullptr : entry->second;
  }

 private:
  ForkMutex mutex_;
  std::unordered_map<const void*, MemoryResource*> resources_;
};

/// Storage that gives its block back itself: one object of the host's heap, not two.
class OwningStorage final : public Storage, private NonCopyable {
 public:
  OwningStorage(int64_t nbytes, Device device, Choice source, Stream stream)
      : Storage(source.resource.allocate(nbytes, stream), nbytes, device, nullptr),
        source_(source),
        stream_(stream) {
    if (!source_.is_chosen) return;
    try {
      Origins::instance().add(data(), source_.resource);
    } catch (...) {
      source_.resource.deallocate(data(), nbytes, stream);
      throw;
    }
  }
  ~OwningStorage() {
    if (source_.is_chosen) Origins::instance().remove(data());
    source_.resource.deallocate(data(), nbytes(), stream_);
  }

 private:
  Choice source_;
  Stream stream_;
};

}  // namespace

ResourceScope::ResourceScope(MemoryResource& resource) : resource_(&resource), before_(innermost) {
  innermost = this;
}

ResourceScope::~ResourceScope() { innermost = before_; }

MemoryResource* ResourceScope::find(Device device) {
  for (const ResourceScope* scope = innermost; scope != nullptr; scope = scope->before_) {
    if (scope->resource_->device() == device) return scope->resource_;
  }
  return chosen(device);
}

MemoryResource& current_resource(Device device) {
  MemoryResource* const resource = ResourceScope::find(device);
  return resource != nullptr ? *resource : unchosen(device);
}

MemoryResource& device_resource(Device device) { return ask(providers, device); }

MemoryResource& whole_resource(Device device) {
  MemoryResource* const resource = chosen(device);
  return resource != nullptr ? *resource : device_resource(device);
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

void set_resource_provider(DeviceType type, ResourceProvider whole, ResourceProvider current) {
  providers[static_cast<size_t>(type)] = whole;
  current_providers[static_cast<size_t>(type)] = current != nullptr ? current : whole;
}

std::shared_ptr<Storage> allocate_storage(int64_t nbytes, Device device) {
  MemoryResource* const chosen_one = ResourceScope::find(device);
  const Choice source =
      chosen_one != nullptr ? Choice{*chosen_one, nbytes > 0} : Choice{unchosen(device), false};
  return std::make_shared<OwningStorage>(nbytes, device, source, current_stream(device));
}

void record_stream(Storage& storage, Stream stream) {
  if (storage.is_deferred() || storage.nbytes() == 0) return;
  MemoryResource* const origin = Origins::instance().find(storage.data());
  MemoryResource& source = origin != nullptr ? *origin : unchosen(storage.device());
  source.record_stream(storage.data(), stream);
}

}  // namespace cuop::memory
