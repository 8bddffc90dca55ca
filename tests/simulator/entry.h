// What every entry point of the simulated driver begins with.
#pragma once

#include <exception>
#include <utility>

#include "tests/simulator/device.h"
#include "tests/simulator/exported.h"
#include "tests/simulator/stream.h"

namespace cuop::simulator {

using namespace backend::cuda;  // NOLINT: the driver's own types, by the project's names

inline constexpr auto kInvalidHandle = Result{400};

/// kSuccess once cuInit was called in this process; a forked child starts over.
Result check_process();
void set_initialised();

/// Runs the call, which no exception may leave.
template <class Call>
Result answered(Call&& call) noexcept {
  const Result state = check_process();
  if (state != Result::kSuccess) return state;
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return Result::kOutOfMemory;
  } catch (const std::exception&) {
    return Result::kUnknown;
  }
}

/// The same for calls that need a context, whose device may not be lost; the call gets the device.
template <class Call>
Result in_context(Call&& call) noexcept {
  return answered([&] {
    const int device = current_device();
    if (device < 0) return Result::kInvalidContext;
    if (is_lost(device)) return error_of(device);
    return call(device);
  });
}

/// The stream that a handle stands for on a device; null when it is none.
std::shared_ptr<Stream> stream_of(StreamHandle handle, int device);

/// Runs call(stream) in the context of the current device.
template <class Call>
Result on_stream(StreamHandle handle, Call&& call) noexcept {
  return in_context([&](int device) {
    const auto stream = stream_of(handle, device);
    return stream == nullptr ? kInvalidHandle : call(*stream);
  });
}

}  // namespace cuop::simulator
