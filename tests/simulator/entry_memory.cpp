// Entry points about memory.
#include <atomic>
#include <map>
#include <mutex>

#include "tests/simulator/capture.h"
#include "tests/simulator/entry.h"
#include "tests/simulator/faults.h"
#include "tests/simulator/transfer.h"

namespace cuop::simulator {

namespace {

constexpr size_t kGranularity = size_t{2} << 20;
constexpr unsigned kEveryDevice = 0xff;

AddressSpace& space() { return AddressSpace::instance(); }

/// The driver's own pool of a device: what was freed counts as reserved until it is trimmed.
struct Pool {
  std::atomic<uint64_t> used = 0, used_high = 0, reserved = 0, reserved_high = 0, threshold = 0;
  std::atomic<unsigned> opened_to = 0;  ///< devices beside the owner
};
Pool& pool_of(int device) {
  static auto* pools = new std::array<Pool, kMaxSimulated>;
  return (*pools)[static_cast<size_t>(device)];
}
Pool* pool_of(MemoryPoolHandle handle) { return reinterpret_cast<Pool*>(handle); }
void raise_to(std::atomic<uint64_t>& high, uint64_t value) {
  uint64_t known = high;
  while (value > known && !high.compare_exchange_weak(known, value)) {
  }
}

/// Physical memory by the number that stands for it.
struct Handles {
  std::mutex mutex;
  std::map<MemoryHandle, std::shared_ptr<const Physical>> all;
  MemoryHandle next = 1;
};
Handles& handles() {
  static auto* made = new Handles;
  return *made;
}

MemoryHandle add_handle(std::shared_ptr<const Physical> memory) {
  const std::lock_guard lock(handles().mutex);
  const MemoryHandle handle = handles().next++;
  handles().all.emplace(handle, std::move(memory));
  return handle;
}
std::shared_ptr<const Physical> memory_of(MemoryHandle handle) {
  const std::lock_guard lock(handles().mutex);
  const auto found = handles().all.find(handle);
  return found != handles().all.end() ? found->second : nullptr;
}

Result allocate(DevicePointer* address, size_t bytes, int device, const Pool* pool = nullptr) {
  if (bytes == 0) return Result::kInvalidValue;
  const Result asked = answer_of(Asked::kAllocate, device);
  if (asked != Result::kSuccess) return asked;
  if (!has_room(device, bytes)) return Result::kOutOfMemory;
  const unsigned reach = pool == nullptr ? reached_by(device) : pool->opened_to | 1u << device;
  *address = space().allocate(bytes, device, reach, false, pool != nullptr);
  return *address != 0 ? Result::kSuccess : Result::kOutOfMemory;
}

Result write_attribute(PointerAttribute which, void* to, DevicePointer address) {
  const auto block = space().find(address);
  const auto [begin, bytes] = block ? std::pair<uintptr_t, size_t>(block->begin, block->bytes)
                                    : space().registered_at(address);
  const bool is_registered = !block && bytes > 0;
  const bool is_host = is_registered || (block && block->is_host);
  switch (which) {
    case PointerAttribute::kContext:
      *static_cast<ContextHandle*>(to) = block ? context_of(block->device) : nullptr;
      return Result::kSuccess;
    case PointerAttribute::kMemoryType:
      *static_cast<unsigned*>(to) = static_cast<unsigned>(is_host ? MemoryType::kHost
                                                          : block ? MemoryType::kDevice
                                                                  : MemoryType::kUnregistered);
      return Result::kSuccess;
    case PointerAttribute::kDevicePointer:
    case PointerAttribute::kHostPointer:
      *static_cast<DevicePointer*>(to) = block || is_registered ? address : 0;
      return Result::kSuccess;
    case PointerAttribute::kIsManaged:
      *static_cast<unsigned*>(to) = 0;
      return Result::kSuccess;
    case PointerAttribute::kDeviceOrdinal:
      *static_cast<int*>(to) = block ? block->device : -2;
      return Result::kSuccess;
    case PointerAttribute::kRangeStart:
      *static_cast<DevicePointer*>(to) = begin;
      return Result::kSuccess;
    case PointerAttribute::kRangeBytes:
      *static_cast<size_t*>(to) = bytes;
      return Result::kSuccess;
    case PointerAttribute::kAccessFlags:
      *static_cast<unsigned*>(to) = static_cast<unsigned>(
          block && space().is_reached(address, 1, current_device()) ? AccessFlags::kReadWrite
                                                                    : AccessFlags::kNone);
      return Result::kSuccess;
    case PointerAttribute::kBufferId:
      break;
  }
  return Result::kNotSupported;
}

Result set(DevicePointer to, unsigned value, size_t count, size_t element_bytes, StreamHandle on) {
  return on_stream(on, [&](Stream& stream) {
    return fill(stream, {to, 0, count, 1, value, element_bytes});
  });
}

}  // namespace

CUOP_SIMULATOR_ENTRY Result cuMemcpyAsync(DevicePointer to, DevicePointer from, size_t bytes,
                                          StreamHandle on) {
  return on_stream(
      on, [&](Stream& stream) { return copy(stream, to, from, bytes, Naming::kByAddress); });
}
CUOP_SIMULATOR_ENTRY Result cuMemcpyPeerAsync(DevicePointer to, ContextHandle to_context,
                                              DevicePointer from, ContextHandle from_context,
                                              size_t bytes, StreamHandle on) {
  return on_stream(on, [&](Stream& stream) {
    const auto target = space().find(to), source = space().find(from);
    if (!target || !source || target->device != device_of(to_context) ||
        source->device != device_of(from_context)) {
      return Result::kInvalidValue;
    }
    return copy(stream, to, from, bytes, Naming::kBothContexts);
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemcpy2DAsync(const Copy2d* asked, StreamHandle on) {
  if (asked == nullptr) return Result::kInvalidValue;
  // cuOP uses no other kind of memory.
  for (const Copy2d::Side* side : {&asked->from, &asked->to}) {
    const bool is_plain = side->memory_type == Copy2d::kUnified && side->array == nullptr &&
                          side->first_byte == 0 && side->first_row == 0;
    if (!is_plain || side->pitch > INT32_MAX) return Result::kInvalidValue;
  }
  return on_stream(on, [&](Stream& stream) {
    return copy_rows(stream, {asked->to.address, asked->from.address, asked->to.pitch,
                              asked->from.pitch, asked->row_bytes, asked->rows});
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemsetD8Async(DevicePointer to, unsigned char value, size_t count,
                                            StreamHandle on) {
  return set(to, value, count, 1, on);
}
CUOP_SIMULATOR_ENTRY Result cuMemsetD16Async(DevicePointer to, unsigned short value, size_t count,
                                             StreamHandle on) {
  return set(to, value, count, 2, on);
}
CUOP_SIMULATOR_ENTRY Result cuMemsetD32Async(DevicePointer to, unsigned value, size_t count,
                                             StreamHandle on) {
  return set(to, value, count, 4, on);
}
CUOP_SIMULATOR_ENTRY Result cuMemsetD2D32Async(DevicePointer to, size_t pitch, unsigned value,
                                               size_t width, size_t height, StreamHandle on) {
  return on_stream(on, [&](Stream& stream) {
    return fill(stream, {to, pitch, width, height, value, 4});
  });
}

CUOP_SIMULATOR_ENTRY Result cuMemGetInfo(size_t* free, size_t* total) {
  return in_context([&](int device) {
    const Budget budget = budget_of(device);
    *total = budget.total;
    *free = budget.total - std::min(budget.total, budget.used);
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemAlloc(DevicePointer* address, size_t bytes) {
  return in_context([&](int device) {
    const Result allowed = check_no_strict_capture();
    return allowed == Result::kSuccess ? allocate(address, bytes, device) : allowed;
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemFree(DevicePointer address) {
  return in_context([&](int device) {
    if (address == 0) return Result::kSuccess;
    const Result allowed = check_no_strict_capture();
    if (allowed != Result::kSuccess) return allowed;
    for (const Mark& mark : last_marks(device, false)) wait_for(mark);
    return space().free(address, false);
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemAllocAsync(DevicePointer* address, size_t bytes, StreamHandle on) {
  return on_stream(on, [&](Stream& stream) {
    {
      const std::lock_guard lock(capture_mutex());
      if (stream.capture != nullptr) return Result::kNotSupported;
    }
    Pool& pool = pool_of(stream.device());
    const Result result = allocate(address, bytes, stream.device(), &pool);
    if (result != Result::kSuccess) return result;
    raise_to(pool.used_high, pool.used += bytes);
    if (pool.used > pool.reserved) pool.reserved = pool.used.load();
    raise_to(pool.reserved_high, pool.reserved);
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemFreeAsync(DevicePointer address, StreamHandle on) {
  return on_stream(on, [&](Stream& stream) {
    const auto block = space().find(address);
    if (!block || block->begin != address || block->is_mapped || block->is_host) {
      return Result::kInvalidValue;
    }
    pool_of(block->device).used -= block->bytes;
    return submit(stream, nullptr, [address] { return space().free(address, false); });
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemHostAlloc(void** data, size_t bytes, unsigned) {
  return in_context([&](int device) {
    if (bytes == 0) return Result::kInvalidValue;
    const Result asked = answer_of(Asked::kPin, device);
    if (asked != Result::kSuccess) return asked;
    const DevicePointer address = space().allocate(bytes, device, kEveryDevice, true);
    *data = reinterpret_cast<void*>(address);
    return address != 0 ? Result::kSuccess : Result::kOutOfMemory;
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemFreeHost(void* data) {
  return in_context([&](int device) {
    for (const Mark& mark : last_marks(device, false)) wait_for(mark);
    return space().free(reinterpret_cast<DevicePointer>(data), true);
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemHostRegister(void* data, size_t bytes, unsigned) {
  return in_context([&](int) {
    if (data == nullptr || bytes == 0) return Result::kInvalidValue;
    space().add_registered(data, bytes);
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemHostGetDevicePointer(DevicePointer* address, void* data,
                                                      unsigned flags) {
  return in_context([&](int) {
    if (flags != 0 || !space().is_registered(data, 1)) return Result::kInvalidValue;
    *address = reinterpret_cast<DevicePointer>(data);
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemHostUnregister(void* data) {
  return in_context([&](int) {
    return space().remove_registered(data) ? Result::kSuccess : Result::kInvalidValue;
  });
}

CUOP_SIMULATOR_ENTRY Result cuMemAddressReserve(DevicePointer* address, size_t bytes,
                                                size_t alignment, DevicePointer, uint64_t) {
  return in_context([&](int) {
    if (bytes == 0 || bytes % kGranularity != 0) return Result::kInvalidValue;
    *address = space().reserve(bytes, std::max(alignment, kGranularity));
    return *address != 0 ? Result::kSuccess : Result::kOutOfMemory;
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemAddressFree(DevicePointer address, size_t bytes) {
  return answered([&] { return space().unreserve(address, bytes); });
}
CUOP_SIMULATOR_ENTRY Result cuMemCreate(MemoryHandle* handle, size_t bytes,
                                        const AllocationProperties* wanted, uint64_t) {
  return answered([&] {
    const bool is_ours = wanted->type == AllocationType::kPinned &&
                         wanted->location.type == LocationType::kDevice &&
                         is_device(wanted->location.id);
    if (!is_ours || bytes == 0 || bytes % kGranularity != 0) return Result::kInvalidValue;
    const int device = wanted->location.id;
    if (is_lost(device)) return error_of(device);
    const Result asked = answer_of(Asked::kAllocate, device);
    if (asked != Result::kSuccess) return asked;
    if (!has_room(device, bytes)) return Result::kOutOfMemory;
    const bool is_shareable = wanted->handle_types == ShareableHandle::kPosixFileDescriptor;
    *handle = add_handle(std::make_shared<const Physical>(device, bytes, is_shareable));
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemRelease(MemoryHandle handle) {
  return answered([&] {
    const std::lock_guard lock(handles().mutex);
    return handles().all.erase(handle) == 1 ? Result::kSuccess : Result::kInvalidValue;
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemRetainAllocationHandle(MemoryHandle* handle, void* address) {
  return answered([&] {
    auto memory = space().mapped_at(reinterpret_cast<DevicePointer>(address));
    if (memory == nullptr) return Result::kInvalidValue;
    *handle = add_handle(std::move(memory));
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemExportToShareableHandle(void* to, MemoryHandle handle,
                                                         ShareableHandle type, uint64_t flags) {
  return answered([&] {
    const auto memory = memory_of(handle);
    const bool is_meant = type == ShareableHandle::kPosixFileDescriptor && flags == 0;
    if (memory == nullptr || !is_meant) return Result::kInvalidValue;
    const Result asked = answer_of(Asked::kMap, memory->device());
    if (asked != Result::kSuccess) return asked;
    const int file = memory->share();
    if (file < 0) return Result::kInvalidValue;
    *static_cast<int*>(to) = file;
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemImportFromShareableHandle(MemoryHandle* handle, void* file,
                                                           ShareableHandle type) {
  return answered([&] {
    if (type != ShareableHandle::kPosixFileDescriptor) return Result::kInvalidValue;
    const Result asked = answer_of(Asked::kMap, current_device());
    if (asked != Result::kSuccess) return asked;
    auto memory = Physical::import(static_cast<int>(reinterpret_cast<intptr_t>(file)));
    if (memory == nullptr || !is_device(memory->device())) return Result::kInvalidValue;
    *handle = add_handle(std::move(memory));
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemMap(DevicePointer address, size_t bytes, size_t offset,
                                     MemoryHandle handle, uint64_t) {
  return answered([&] {
    std::shared_ptr<const Physical> memory = memory_of(handle);
    if (memory == nullptr || offset != 0 || bytes != memory->bytes()) return Result::kInvalidValue;
    const Result asked = answer_of(Asked::kMap, current_device());
    if (asked != Result::kSuccess) return asked;
    return space().map(address, std::move(memory));
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemUnmap(DevicePointer address, size_t bytes) {
  return answered([&] { return space().unmap(address, bytes); });
}
CUOP_SIMULATOR_ENTRY Result cuMemSetAccess(DevicePointer address, size_t bytes,
                                           const AccessDescription* access, size_t count) {
  return answered([&] {
    Result result = Result::kSuccess;
    for (size_t i = 0; i < count && result == Result::kSuccess; ++i) {
      if (!is_device(access[i].location.id)) return Result::kInvalidDevice;
      result = space().set_reach(address, bytes, access[i].location.id,
                                 access[i].flags == AccessFlags::kReadWrite);
    }
    return result;
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemGetAllocationGranularity(size_t* bytes,
                                                          const AllocationProperties*,
                                                          Granularity) {
  *bytes = kGranularity;
  return Result::kSuccess;
}

CUOP_SIMULATOR_ENTRY Result cuDeviceGetDefaultMemPool(MemoryPoolHandle* pool, DeviceId device) {
  return answered([&] {
    if (!is_device(device)) return Result::kInvalidDevice;
    *pool = reinterpret_cast<MemoryPoolHandle>(&pool_of(device));
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemPoolSetAccess(MemoryPoolHandle handle,
                                               const AccessDescription* access, size_t count) {
  return answered([&] {
    const auto owner = static_cast<int>(pool_of(handle) - &pool_of(0));
    for (size_t i = 0; i < count; ++i) {
      const int device = access[i].location.id;
      if (!is_device(device) || access[i].flags != AccessFlags::kReadWrite) {
        return Result::kInvalidValue;
      }
      pool_of(handle)->opened_to |= 1u << device;
      space().add_reach(owner, device, true);
    }
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemPoolGetAttribute(MemoryPoolHandle handle, PoolAttribute which,
                                                  void* value) {
  return answered([&] {
    Pool& pool = *pool_of(handle);
    auto& answer = *static_cast<uint64_t*>(value);
    switch (which) {
      case PoolAttribute::kReleaseThreshold:
        answer = pool.threshold;
        return Result::kSuccess;
      case PoolAttribute::kReservedCurrent:
        answer = pool.reserved;
        return Result::kSuccess;
      case PoolAttribute::kReservedHigh:
        answer = pool.reserved_high;
        return Result::kSuccess;
      case PoolAttribute::kUsedCurrent:
        answer = pool.used;
        return Result::kSuccess;
      case PoolAttribute::kUsedHigh:
        answer = pool.used_high;
        return Result::kSuccess;
    }
    return Result::kInvalidValue;
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemPoolSetAttribute(MemoryPoolHandle handle, PoolAttribute which,
                                                  void* value) {
  return answered([&] {
    Pool& pool = *pool_of(handle);
    const uint64_t wanted = *static_cast<uint64_t*>(value);
    const bool is_high = which == PoolAttribute::kReservedHigh || which == PoolAttribute::kUsedHigh;
    if (is_high && wanted == 0) {  // begins anew
      if (which == PoolAttribute::kReservedHigh) pool.reserved_high = pool.reserved.load();
      if (which == PoolAttribute::kUsedHigh) pool.used_high = pool.used.load();
      return Result::kSuccess;
    }
    if (which != PoolAttribute::kReleaseThreshold) return Result::kInvalidValue;
    pool.threshold = wanted;
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuMemPoolTrimTo(MemoryPoolHandle handle, size_t bytes) {
  return answered([&] {
    Pool& pool = *pool_of(handle);
    pool.reserved = std::max<uint64_t>(pool.used, std::min<uint64_t>(pool.reserved, bytes));
    return Result::kSuccess;
  });
}

CUOP_SIMULATOR_ENTRY Result cuPointerGetAttributes(unsigned count, PointerAttribute* attributes,
                                                   void** data, DevicePointer address) {
  return answered([&] {
    Result result = Result::kSuccess;
    for (unsigned i = 0; i < count && result == Result::kSuccess; ++i) {
      result = write_attribute(attributes[i], data[i], address);
    }
    return result;
  });
}

}  // namespace cuop::simulator
