#include "cuop/backend/cuda/cuda_event.h"

#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/wait_guards.h"
#include "cuop/backend/cuda/waiting.h"
#include "cuop/backend/event_pair_internal.h"
#include "cuop/core/error.h"

namespace cuop::backend::cuda {

CudaEvent::CudaEvent(Device device, bool is_timed) : device_(device), is_timed_(is_timed) {
  const ContextScope scope(device);
  check(driver().event_create(&handle_, is_timed ? kEventDefault : kEventDisableTiming),
        "event: making one on ", device);
}

CudaEvent::~CudaEvent() { driver().event_destroy(handle_); }

void CudaEvent::record(Stream stream) {
  if (stream.device != device_) {
    throw DeviceError(
        cat("event: made for ", device_, ", cannot mark a stream of ", stream.device));
  }
  const ContextScope scope(device_);
  check(driver().event_record(handle_, handle_of(stream)), "event: recording on ", device_);
  is_recorded_ = true;
  awaited_ = awaited_devices(device_).of(handle_of(stream)).devices | AwaitedDevices::only(device_);
}

void CudaEvent::wait(Stream stream) const {
  if (stream.device.is_cpu()) return synchronize();
  const ContextScope scope(stream.device);
  check(driver().stream_wait_event(handle_of(stream), handle_, 0), "event: letting a stream of ",
        stream.device, " wait");
  awaited_devices(stream.device)
      .add(handle_of(stream), awaited_ & ~AwaitedDevices::only(stream.device));
}

void CudaEvent::synchronize() const {
  const ContextScope scope(device_);
  check(wait_until_ready([this] { return driver().event_query(handle_); }), "event: waiting for ",
        device_);
  wait_guards(device_).check();
}

bool CudaEvent::is_done() const {
  const ContextScope scope(device_);
  const Result result = driver().event_query(handle_);
  if (result == Result::kNotReady) return false;
  check(result, "event: looking at one of ", device_);
  wait_guards(device_).check();
  return true;
}

double CudaEvent::elapsed_ms(const Event& since) const {
  const CudaEvent& first = same_device(*this, since);
  if (!is_timed_ || !first.is_timed_) {
    throw ExecutionError("event: made without timing; pass timed=True");
  }
  if (!is_recorded_ || !first.is_recorded_) {
    throw ExecutionError("event: nothing was recorded yet");
  }
  synchronize();
  const ContextScope scope(device_);
  float ms = 0;
  check(driver().event_elapsed_time(&ms, first.handle_, handle_), "event: measuring on ", device_);
  return ms;
}

}  // namespace cuop::backend::cuda
