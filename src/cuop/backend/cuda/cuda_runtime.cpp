#include "cuop/backend/cuda/cuda_runtime.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "cuop/backend/cpu/apart.h"
#include "cuop/backend/cpu/exit_gate.h"
#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/cuda_event.h"
#include "cuop/backend/cuda/graph.h"
#include "cuop/backend/cuda/operation.h"
#include "cuop/backend/cuda/waiting.h"
#include "cuop/core/error.h"
#include "cuop/core/log.h"
#include "cuop/core/one_per_device.h"

namespace cuop::backend::cuda {

namespace {

constexpr int64_t kMaxRows = 1 << 24;

std::string text_of(const Uuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", unsigned{uuid.bytes[i]});
    text += digits;
  }
  return text;
}

DeviceId driver_id(Device device) {
  primary_context(device);
  DeviceId id = 0;
  check(driver().device_get(&id, device.index), device);
  return id;
}

CudaProperties read_properties(Device device, DeviceId id) {
  const Driver& d = driver();
  const auto get = [&](DeviceAttribute attribute) {
    int value = 0;
    check(d.device_get_attribute(&value, attribute, id), device, ": reading its attributes");
    return value;
  };
  CudaProperties p;
  char name[256] = {};
  check(d.device_get_name(name, sizeof name, id), device, ": reading its name");
  p.name = name;
  Uuid uuid;
  check(d.device_get_uuid(&uuid, id), device, ": reading its UUID");
  p.uuid = text_of(uuid);
  size_t total = 0;
  check(d.device_total_mem(&total, id), device, ": reading its memory");
  p.total_bytes = static_cast<int64_t>(total);
  p.major = get(DeviceAttribute::kComputeCapabilityMajor);
  p.minor = get(DeviceAttribute::kComputeCapabilityMinor);
  p.multiprocessors = get(DeviceAttribute::kMultiprocessorCount);
  p.warp_size = get(DeviceAttribute::kWarpSize);
  p.max_threads_per_block = get(DeviceAttribute::kMaxThreadsPerBlock);
  p.shared_per_block = get(DeviceAttribute::kMaxSharedMemoryPerBlock);
  p.shared_per_block_optin = get(DeviceAttribute::kMaxSharedMemoryPerBlockOptin);
  p.l2_bytes = get(DeviceAttribute::kL2CacheBytes);
  p.clock_khz = get(DeviceAttribute::kClockKhz);
  p.memory_clock_khz = get(DeviceAttribute::kMemoryClockKhz);
  p.memory_bus_bits = get(DeviceAttribute::kMemoryBusBits);
  p.driver_version = d.version;
  p.has_virtual_memory = get(DeviceAttribute::kVirtualMemoryManagement) != 0;
  p.has_memory_pools = get(DeviceAttribute::kMemoryPools) != 0;
  p.has_file_descriptors = get(DeviceAttribute::kPosixFileDescriptors) != 0;
  p.has_host_register = get(DeviceAttribute::kHostRegister) != 0;
  return p;
}

/// Where the driver says that an address lies, and what the current context's GPU may do with it;
/// ordinary host memory is unknown to it.
struct Place {
  unsigned type = 0;
  int gpu = 0;
  unsigned access = 0;
  bool is_gpu() const { return static_cast<MemoryType>(type) == MemoryType::kDevice; }
  bool is_ordinary() const { return static_cast<MemoryType>(type) == MemoryType::kUnregistered; }
};

Place place_of(const void* data) {
  Place place;
  PointerAttribute attributes[] = {PointerAttribute::kMemoryType, PointerAttribute::kDeviceOrdinal,
                                   PointerAttribute::kAccessFlags};
  void* answers[] = {&place.type, &place.gpu, &place.access};
  check(driver().pointer_get_attributes(3, attributes, answers, device_pointer(data)),
        "copy: looking where its memory lies");
  return place;
}

/// The shortest of 1, 2 and 4 bytes whose repetition is the element; 0 when there is none.
int64_t period_of(const unsigned char* element, int64_t bytes) {
  for (int64_t period : {1, 2, 4}) {
    if (bytes % period != 0) continue;
    bool repeats = true;
    for (int64_t i = period; i < bytes && repeats; ++i) repeats = element[i] == element[i - period];
    if (repeats) return period;
  }
  return 0;
}

/// The driver sets patterns of up to 4 bytes: each word of a longer element is a column of a matrix
/// whose rows are the elements.
Result set_words(DevicePointer to, const unsigned char* element, int64_t element_bytes,
                 int64_t count, StreamHandle queue) {
  for (int64_t first = 0; first < count; first += kMaxRows) {
    const auto rows = static_cast<size_t>(std::min(kMaxRows, count - first));
    for (int64_t word = 0; word < element_bytes; word += 4) {
      uint32_t value = 0;
      std::memcpy(&value, element + word, sizeof value);
      const Result result =
          driver().memset_d2d32_async(to + static_cast<DevicePointer>(first * element_bytes + word),
                                      static_cast<size_t>(element_bytes), value, 1, rows, queue);
      if (result != Result::kSuccess) return result;
    }
  }
  return Result::kSuccess;
}

/// Recorded copies read and write host memory when the graph runs, which may be gone by then.
void refuse_while_capturing(Stream stream) {
  if (is_capturing(stream)) {
    throw ExecutionError(cat("copy: host memory takes part while a graph is captured on ",
                             stream.device, "; copy before the capture or after it"));
  }
}

}  // namespace

CudaRuntime::CudaRuntime(Device device)
    : device_(device),
      id_(driver_id(device)),
      access_(id_),
      awaited_(awaited_devices(device)),
      guards_(wait_guards(device)),
      properties_(read_properties(device, id_)) {}

void CudaRuntime::copy(void* dst, const void* src, int64_t bytes, Stream stream) {
  if (bytes <= 0 || dst == src) return;
  const ContextScope scope(device_);
  const Driver& d = driver();
  const StreamHandle queue = handle_of(stream);
  const Place to = place_of(dst), from = place_of(src);
  if (!to.is_gpu() || !from.is_gpu()) {
    refuse_while_capturing(stream);
    copy_host(dst, src, bytes, stream, to.is_gpu() && from.is_ordinary());
    return;
  }
  if (!is_capturing(stream)) {
    for (const int gpu : {to.gpu, from.gpu}) open_way_to({DeviceType::kCuda, gpu});
  }
  const DevicePointer target = device_pointer(dst), source = device_pointer(src);
  Operation operation("copy", stream);
  const auto size = static_cast<size_t>(bytes);
  // Only the copy that names both contexts reaches memory that the other GPU has no access to. On
  // default streams it waits for that of the other GPU too, and its call takes five times as long:
  // among four H100s 160 GB/s and 18 us where the plain one takes 370 and 3.
  const auto reads_and_writes = static_cast<unsigned>(AccessFlags::kReadWrite);
  const bool is_reached = to.access == reads_and_writes && (from.access & reads_and_writes) != 0;
  const Result result =
      to.gpu != from.gpu && !is_reached
          ? d.memcpy_peer_async(target, primary_context({DeviceType::kCuda, to.gpu}), source,
                                primary_context({DeviceType::kCuda, from.gpu}), size, queue)
          : d.memcpy_async(target, source, size, queue);
  check(result, "copy: ", bytes, " bytes on ", device_);
  operation.started();
}

void CudaRuntime::copy_locked(void* dst, const void* src, int64_t bytes, Stream stream) {
  if (bytes <= 0) return;
  const ContextScope scope(device_);
  refuse_while_capturing(stream);
  Operation operation("copy", stream);
  const Result result = driver().memcpy_async(device_pointer(dst), device_pointer(src),
                                              static_cast<size_t>(bytes), handle_of(stream));
  check(result, "copy: ", bytes, " bytes between ", device_, " and page-locked memory");
  operation.started();
}

bool CudaRuntime::is_locked(const void* on_host, int64_t bytes) {
  const ContextScope scope(device_);
  unsigned type = 0;
  DevicePointer begin = 0;
  size_t size = 0;
  PointerAttribute attributes[] = {PointerAttribute::kMemoryType, PointerAttribute::kRangeStart,
                                   PointerAttribute::kRangeBytes};
  void* answers[] = {&type, &begin, &size};
  check(driver().pointer_get_attributes(3, attributes, answers, device_pointer(on_host)),
        "copy: looking whether its memory is page-locked");
  if (static_cast<MemoryType>(type) == MemoryType::kUnregistered) return false;
  return device_pointer(on_host) - begin + static_cast<DevicePointer>(bytes) <= size;
}

void CudaRuntime::open_way_to(Device peer) {
  const uint64_t bit = uint64_t{1} << peer.index;
  if (peer == device_ || (was_tried_ & bit) != 0) return;
  try {
    if (enable_peer_access(peer)) is_open_ |= bit;
  } catch (const DeviceError& error) {  // more peers than the hardware has room for
    log(LogLevel::kWarn, error.what(), "; copies go through the host's memory");
  }
  was_tried_ |= bit;
}

bool CudaRuntime::reads(Device other) {
  if (other == device_) return true;
  if (other.type != device_.type) return false;
  open_way_to(other);
  return (is_open_ & (uint64_t{1} << other.index)) != 0;
}

void CudaRuntime::copy_host(void* dst, const void* src, int64_t bytes, Stream stream,
                            bool is_read_at_once) {
  // So much goes into the queue of a stream whatever that still holds.
  constexpr int64_t kQueued = 64 << 10;
  constexpr int64_t kPiece = 256 << 20;  // some 0.05 s
  const Driver& d = driver();
  const StreamHandle queue = handle_of(stream);
  // The driver waits in the copy itself for what the stream holds, and hears no interrupt there. So
  // that comes first, and when it is interrupted nothing touches the host's memory.
  if (!is_read_at_once || bytes > kQueued) {
    check(wait_for(queue), "copy: waiting for ", device_, " to copy ", bytes, " bytes");
  }
  Operation operation("copy", stream);
  for (int64_t done = 0; done < bytes; done += kPiece) {
    if (done > 0) check_interrupt();
    const auto size = static_cast<size_t>(std::min(kPiece, bytes - done));
    const DevicePointer target = device_pointer(static_cast<char*>(dst) + done);
    const DevicePointer source = device_pointer(static_cast<const char*>(src) + done);
    check(d.memcpy_async(target, source, size, queue), "copy: ", bytes, " bytes on ", device_);
    // Page-locked memory is read later, and what is copied to the host must be there when the
    // caller looks.
    if (!is_read_at_once) {
      check(d.stream_synchronize(queue), "copy: waiting for ", bytes, " bytes on ", device_);
    }
  }
  operation.started();
}

void CudaRuntime::fill_bytes(void* dst, int value, int64_t bytes, Stream stream) {
  const auto byte = static_cast<unsigned char>(value);
  fill(dst, &byte, 1, bytes, stream);
}

void CudaRuntime::fill(void* dst, const void* element, int64_t element_bytes, int64_t count,
                       Stream stream) {
  const int64_t bytes = element_bytes * count;
  if (bytes <= 0) return;
  const ContextScope scope(device_);
  const Driver& d = driver();
  const StreamHandle queue = handle_of(stream);
  const DevicePointer to = device_pointer(dst);
  const int64_t period = period_of(static_cast<const unsigned char*>(element), element_bytes);
  Operation operation("fill", stream);
  Result result{};
  if (period == 1) {
    result = d.memset_d8_async(to, *static_cast<const unsigned char*>(element),
                               static_cast<size_t>(bytes), queue);
  } else if (period == 2) {
    uint16_t pattern = 0;
    std::memcpy(&pattern, element, sizeof pattern);
    result = d.memset_d16_async(to, pattern, static_cast<size_t>(bytes / 2), queue);
  } else if (period == 4) {
    uint32_t pattern = 0;
    std::memcpy(&pattern, element, sizeof pattern);
    result = d.memset_d32_async(to, pattern, static_cast<size_t>(bytes / 4), queue);
  } else {
    result = set_words(to, static_cast<const unsigned char*>(element), element_bytes, count, queue);
  }
  check(result, "fill: ", bytes, " bytes on ", device_);
  operation.started();
}

Stream CudaRuntime::create_stream(int priority) {
  {
    const std::lock_guard lock(mutex_);
    const auto idle = std::find_if(
        idle_streams_.begin(), idle_streams_.end(),
        [priority](const IdleStream& candidate) { return candidate.priority == priority; });
    if (idle != idle_streams_.end()) {
      const StreamHandle handle = idle->handle;
      idle_streams_.erase(idle);
      return {device_, handle};
    }
  }
  const ContextScope scope(device_);
  StreamHandle made = nullptr;
  check(driver().stream_create_with_priority(&made, kStreamNonBlocking, priority),
        "stream: making one on ", device_);
  const std::lock_guard lock(mutex_);
  priorities_.emplace(made, priority);
  idle_streams_.reserve(priorities_.size());  // so that giving one back cannot fail
  return {device_, made};
}

void CudaRuntime::destroy_stream(Stream stream) noexcept {
  // Kept for the next one who asks: memory that was allocated on it may be freed on it later.
  const std::lock_guard lock(mutex_);
  const auto known = priorities_.find(handle_of(stream));
  if (known != priorities_.end()) idle_streams_.push_back({known->first, known->second});
}

std::unique_ptr<Event> CudaRuntime::create_event(bool is_timed) {
  return std::make_unique<CudaEvent>(device_, is_timed);
}

std::unique_ptr<Graph> CudaRuntime::create_graph() { return std::make_unique<CudaGraph>(*this); }

void CudaRuntime::order(Stream later, Stream earlier) {
  if (later == earlier) return;
  CudaEvent event(earlier.device, false);
  event.record(earlier);
  event.wait(later);
}

bool CudaRuntime::is_idle(Stream stream) {
  const ContextScope scope(device_);
  const StreamHandle queue = handle_of(stream);
  const auto awaited = awaited_.of(queue);
  const Result result = driver().stream_query(queue);
  check_awaited(awaited);
  if (result == Result::kNotReady) return false;
  check(result, "stream: looking at one of ", device_);
  guards_.check();
  awaited_.settle(queue, awaited);
  return true;
}

Result CudaRuntime::wait_for(StreamHandle queue) {
  const auto awaited = awaited_.of(queue);
  const Result result = wait_until_ready([&] {
    const Result now = driver().stream_query(queue);
    check_awaited(awaited);
    return now;
  });
  if (result != Result::kSuccess) return result;
  guards_.check();
  awaited_.settle(queue, awaited);
  return result;
}

void CudaRuntime::check_awaited(const AwaitedDevices::Awaited& awaited) const {
  for (AwaitedDevices::Set left = awaited.devices; left != 0; left &= left - 1) {
    const Device other{device_.type, std::countr_zero(left)};
    try {
      cuda_runtime(other).check_works();
    } catch (const Error& error) {
      throw ExecutionError(
          cat("stream: its work on ", device_, " waited for that of ", other, ": ", error.what()));
    }
  }
}

void CudaRuntime::check_works() {
  const ContextScope scope(device_);
  {
    const std::lock_guard lock(mutex_);
    if (probe_ == nullptr) {
      check(driver().event_create(&probe_, kEventDisableTiming), device_, ": making an event");
    }
  }
  check(driver().event_query(probe_), device_);
}

void CudaRuntime::forget_order() { awaited_.clear(); }

void CudaRuntime::synchronize(Stream stream) {
  const ContextScope scope(device_);
  check(wait_for(handle_of(stream)), "stream: waiting for one of ", device_);
}

void CudaRuntime::synchronize() {
  const ContextScope scope(device_);
  // A recording of this thread refuses to be waited for, but knows no other thread. The default
  // stream cannot be recorded: an error of its work is told by the wait, not by the question.
  const Stream current = current_stream(device_);
  if (current.handle != nullptr && is_capturing(current)) {
    check(driver().ctx_synchronize(), "synchronize: waiting for ", device_);
  }
  // Other libraries have streams that are not known here, and the driver's wait for all hears no
  // interrupt.
  const auto wait = [device = device_] {
    const GatedCall call;
    const ContextScope there(device);
    check(driver().ctx_synchronize(), "synchronize: waiting for ", device);
  };
  run_apart(wait, kAwake);
  guards_.check();
}

MemoryInfo CudaRuntime::memory_info() const {
  const ContextScope scope(device_);
  size_t free = 0, total = 0;
  check(driver().mem_get_info(&free, &total), device_, ": reading its free memory");
  return {static_cast<int64_t>(free), static_cast<int64_t>(total)};
}

std::string CudaRuntime::description() const {
  const int cuda = driver().version;
  return cat(properties_.name, ", compute capability ", properties_.major, '.', properties_.minor,
             ", ", properties_.multiprocessors, " multiprocessors, ",
             properties_.total_bytes / (int64_t{1} << 20), " MiB, driver for CUDA ", cuda / 1000,
             '.', cuda % 1000 / 10);
}

GpuLimits CudaRuntime::kernel_limits() const {
  return {properties_.major * 10 + properties_.minor, properties_.shared_per_block_optin};
}

bool CudaRuntime::enable_peer_access(Device peer) {
  if (peer == device_) return true;
  const Driver& d = driver();
  int can = 0;
  CudaRuntime& owner = cuda_runtime(peer);
  check(d.device_can_access_peer(&can, id_, owner.id()), "peer access: ", device_, " to ", peer);
  if (can == 0) return false;
  const ContextScope scope(device_);
  const Result result = d.ctx_enable_peer_access(primary_context(peer), 0);
  if (result != Result::kPeerAccessAlreadyEnabled) {
    check(result, "peer access: ", device_, " to ", peer);
  }
  check(owner.access().admit(id_, owner.properties().has_memory_pools), "peer access: ", device_,
        " to mapped memory of ", peer);
  return true;
}

CudaRuntime& cuda_runtime(Device device) {
  static OnePerDevice<CudaRuntime> runtimes;
  primary_context(device);  // a device that is absent is said before the table is asked
  return runtimes.get(device, [device] { return new CudaRuntime(device); });
}

}  // namespace cuop::backend::cuda
