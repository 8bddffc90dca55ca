#include "cuop/core/stream.h"

#include <array>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

namespace {

thread_local std::array<void*, kMaxDevices> handles{};

void*& handle_of(Device device) {
  if (device.index < 0 || device.index >= kMaxDevices) {
    throw DeviceError(
        cat("stream: ", device, " is beyond the ", kMaxDevices, " devices of a host"));
  }
  return handles[static_cast<size_t>(device.index)];
}

}  // namespace

Stream current_stream(Device device) {
  if (device.is_cpu()) return {device};
  return {device, handle_of(device)};
}

void set_current_stream(Stream stream) {
  if (!stream.device.is_cpu()) handle_of(stream.device) = stream.handle;
}

StreamScope::StreamScope(Stream stream) : before_(current_stream(stream.device)) {
  set_current_stream(stream);
}

StreamScope::~StreamScope() {
  if (!before_.device.is_cpu()) handles[static_cast<size_t>(before_.device.index)] = before_.handle;
}

}  // namespace cuop
