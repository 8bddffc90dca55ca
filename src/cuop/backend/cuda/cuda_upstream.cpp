#include "cuop/backend/cuda/cuda_upstream.h"

#include <algorithm>

#include "cuop/backend/cuda/capture.h"
#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/waiting.h"
#include "cuop/core/log.h"
#include "cuop/memory/host_upstream.h"

namespace cuop::backend::cuda {

namespace {

/// Runs work of the driver in the device's context where no error may leave: while the process ends
/// or after the device was lost there is nothing to be done about one.
template <class Work>
void quietly(Device device, const char* what, Work&& work) noexcept {
  try {
    const ContextScope scope(device);
    const RelaxedCapture outside;
    const Result result = work(driver());
    if (result != Result::kSuccess && result != Result::kDeinitialized) {
      log(LogLevel::kInfo, "memory: ", what, " on ", device, ": ", describe(result));
    }
  } catch (const std::exception& error) {
    log(LogLevel::kInfo, "memory: ", what, " on ", device, ": ", error.what());
  }
}

/// Whether memory was given; an error other than "out of memory" is thrown.
bool is_given(Result result, const char* what, int64_t bytes, Device device) {
  if (result == Result::kOutOfMemory) return false;
  check(result, "memory: ", what, ' ', bytes, " bytes of ", device);
  return true;
}

memory::DeviceMemory memory_of(const CudaRuntime& runtime) {
  const MemoryInfo info = runtime.memory_info();
  return {info.free, info.total};
}

}  // namespace

MappedCudaUpstream::MappedCudaUpstream(CudaRuntime& runtime) : runtime_(runtime) {
  const ContextScope scope(device());
  const AllocationProperties wanted = properties();
  size_t bytes = 0;
  check(driver().mem_get_allocation_granularity(&bytes, &wanted, Granularity::kMinimum),
        "memory: granularity of ", device());
  granule_ = std::max(static_cast<int64_t>(bytes), int64_t{2} << 20);
  is_shareable_ = runtime.properties().has_file_descriptors && can_share();
}

/// Some systems (containers without the right to it) refuse memory that can be exported, although
/// the device has it.
bool MappedCudaUpstream::can_share() const {
  AllocationProperties wanted = properties();
  wanted.handle_types = ShareableHandle::kPosixFileDescriptor;
  MemoryHandle handle = 0;
  const Result result = driver().mem_create(&handle, static_cast<size_t>(granule_), &wanted, 0);
  if (result == Result::kSuccess) driver().mem_release(handle);
  if (result == Result::kSuccess || result == Result::kOutOfMemory) return true;
  log(LogLevel::kInfo, "memory: other processes cannot map that of ", device(), ": ",
      describe(result));
  return false;
}

AllocationProperties MappedCudaUpstream::properties() const {
  AllocationProperties result;
  result.location = {LocationType::kDevice, runtime_.id()};
  if (is_shareable_) result.handle_types = ShareableHandle::kPosixFileDescriptor;
  return result;
}

void* MappedCudaUpstream::acquire(int64_t bytes) {
  const ContextScope scope(device());
  const RelaxedCapture outside;
  DevicePointer range = 0;
  const Result result = driver().mem_address_reserve(&range, static_cast<size_t>(bytes),
                                                     static_cast<size_t>(granule_), 0, 0);
  if (!is_given(result, "reserving", bytes, device())) return nullptr;
  runtime_.mapped().add_range(reinterpret_cast<void*>(range), bytes);
  return reinterpret_cast<void*>(range);
}

void MappedCudaUpstream::release(void* range, int64_t bytes) noexcept {
  runtime_.mapped().remove_range(range);
  quietly(device(), "releasing addresses", [&](const Driver& d) {
    return d.mem_address_free(device_pointer(range), static_cast<size_t>(bytes));
  });
}

bool MappedCudaUpstream::map(void* address, int64_t bytes, int64_t piece) {
  const ContextScope scope(device());
  const RelaxedCapture outside;
  const Driver& d = driver();
  const AllocationProperties wanted = properties();
  const auto unit = static_cast<size_t>(piece);
  int64_t mapped = 0;
  Result result = Result::kSuccess;
  for (; mapped < bytes && result == Result::kSuccess; mapped += piece) {
    MemoryHandle handle = 0;
    result = d.mem_create(&handle, unit, &wanted, 0);
    if (result != Result::kSuccess) break;
    const DevicePointer at = device_pointer(address) + static_cast<DevicePointer>(mapped);
    result = d.mem_map(at, unit, 0, handle, 0);
    d.mem_release(handle);  // lives as long as it is mapped
    if (result != Result::kSuccess) break;
  }
  if (result == Result::kSuccess) {
    result = runtime_.access().open(address, bytes, piece);
  }
  if (result != Result::kSuccess) {
    unmap(address, mapped, piece);
  } else if (is_shareable_) {
    runtime_.mapped().add(address, bytes, piece);
  }
  return is_given(result, "mapping", bytes, device());
}

void MappedCudaUpstream::unmap(void* address, int64_t bytes, int64_t piece) noexcept {
  runtime_.mapped().remove(address, bytes);
  runtime_.access().forget(address, bytes, piece);
  // The driver unmaps what was mapped in one piece, in one piece.
  quietly(device(), "unmapping", [&](const Driver& d) {
    Result result = Result::kSuccess;
    for (int64_t at = 0; at < bytes; at += piece) {
      const Result one = d.mem_unmap(device_pointer(address) + static_cast<DevicePointer>(at),
                                     static_cast<size_t>(piece));
      if (one != Result::kSuccess) result = one;
    }
    return result;
  });
}

memory::DeviceMemory MappedCudaUpstream::memory() const { return memory_of(runtime_); }

void* PlainCudaUpstream::acquire(int64_t bytes) {
  const ContextScope scope(device());
  const RelaxedCapture outside;
  DevicePointer data = 0;
  const Result result = driver().mem_alloc(&data, static_cast<size_t>(bytes));
  return is_given(result, "allocating", bytes, device()) ? reinterpret_cast<void*>(data) : nullptr;
}

void PlainCudaUpstream::release(void* range, int64_t) noexcept {
  quietly(device(), "freeing", [&](const Driver& d) { return d.mem_free(device_pointer(range)); });
}

memory::DeviceMemory PlainCudaUpstream::memory() const { return memory_of(runtime_); }

void* PinnedHostUpstream::acquire(int64_t bytes) {
  const ContextScope scope(runtime_.device());
  const RelaxedCapture outside;
  void* data = nullptr;
  const Result result = driver().mem_host_alloc(&data, static_cast<size_t>(bytes), kHostPortable);
  return is_given(result, "page-locking", bytes, runtime_.device()) ? data : nullptr;
}

void PinnedHostUpstream::release(void* range, int64_t) noexcept {
  quietly(runtime_.device(), "freeing page-locked memory",
          [&](const Driver& d) { return d.mem_free_host(range); });
}

memory::DeviceMemory PinnedHostUpstream::memory() const { return memory::host_memory(); }

memory::StreamOrder::Event CudaOrder::record(Stream stream) noexcept {
  EventHandle event = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      event = idle_.back();
      idle_.pop_back();
    }
  }
  quietly(runtime_.device(), "marking a stream", [&](const Driver& d) {
    Result result = Result::kSuccess;
    if (event == nullptr) result = d.event_create(&event, kEventDisableTiming);
    if (result == Result::kSuccess) result = d.event_record(event, handle_of(stream));
    if (result == Result::kSuccess) return result;
    // Without a mark nobody may go on before everything is done.
    if (event != nullptr) d.event_destroy(event);
    event = nullptr;
    d.ctx_synchronize();
    return result;
  });
  return event;
}

bool CudaOrder::is_done(Event event) noexcept {
  // An error is the device's, which then runs nothing any more.
  Result result = Result::kNotReady;
  quietly(runtime_.device(), "looking at a mark", [&](const Driver& d) {
    result = d.event_query(static_cast<EventHandle>(event));
    return result == Result::kNotReady ? Result::kSuccess : result;
  });
  return result != Result::kNotReady;
}

void CudaOrder::wait(Event event) noexcept {
  quietly(runtime_.device(), "waiting for a mark",
          [&](const Driver& d) { return d.event_synchronize(static_cast<EventHandle>(event)); });
}

void CudaOrder::wait_interruptibly(Event event) {
  wait_until_ready([&] { return is_done(event) ? Result::kSuccess : Result::kNotReady; });
}

void CudaOrder::make_wait(Stream stream, Event event) noexcept {
  quietly(runtime_.device(), "letting a stream wait", [&](const Driver& d) {
    const auto mark = static_cast<EventHandle>(event);
    const Result result = d.stream_wait_event(handle_of(stream), mark, 0);
    return result == Result::kSuccess ? result : d.event_synchronize(mark);
  });
}

void CudaOrder::recycle(Event event) noexcept {
  const std::lock_guard lock(mutex_);
  idle_.push_back(static_cast<EventHandle>(event));
}

}  // namespace cuop::backend::cuda
