#include "cuop/backend/cuda/stream_flags.h"

#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/cuda/driver.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::backend::cuda {

FlagMemory::FlagMemory(Device device, void* data, int64_t bytes)
    : device_(device), data_(static_cast<char*>(data)) {
  if (!cuda_runtime(device).properties().has_host_register) {
    throw ExecutionError(cat("flags: ", device, " takes no memory that was mapped by others"));
  }
  const ContextScope scope(device_);
  const Driver& d = driver();
  check(d.mem_host_register(data, static_cast<size_t>(bytes), kHostPortable | kHostMapped),
        "flags: locking ", bytes, " bytes of the host's memory for ", device_);
  const Result found = d.mem_host_get_device_pointer(&on_device_, data, 0);
  if (found == Result::kSuccess) return;
  d.mem_host_unregister(data);
  raise(found, cat("flags: looking where ", device_, " finds the host's memory"));
}

FlagMemory::~FlagMemory() {
  try {
    const ContextScope scope(device_);
    driver().mem_host_unregister(data_);
  } catch (const Error&) {
    // The process is ending or its device is lost; the driver lets go of the memory itself.
  }
}

uint64_t FlagMemory::address_of(const Flag& flag) const {
  return on_device_ + static_cast<uint64_t>(reinterpret_cast<const char*>(&flag) - data_);
}

void FlagMemory::write(const Flag& flag, uint32_t number, Stream stream) const {
  const ContextScope scope(device_);
  check(driver().stream_write_value(handle_of(stream), address_of(flag), number, kWriteBehindFence),
        "flags: a stream of ", device_, " writing one");
}

void FlagMemory::await(const Flag& flag, uint32_t number, Stream stream) const {
  const ContextScope scope(device_);
  check(driver().stream_wait_value(handle_of(stream), address_of(flag), number, kWaitReached),
        "flags: a stream of ", device_, " waiting for one");
}

}  // namespace cuop::backend::cuda
