#include "cuop/backend/cuda/operation.h"

#include <atomic>

#include "cuop/backend/cuda/driver.h"
#include "cuop/backend/cuda/recent_operations.h"
#include "cuop/backend/cuda/waiting.h"
#include "cuop/core/env.h"

namespace cuop::backend::cuda {

namespace {

std::atomic<bool> is_told_to_block = false;

void wait_for(const char* operation, StreamHandle stream) {
  const Driver& d = driver();
  CaptureStatus status{};
  check(d.stream_is_capturing(stream, &status), operation);
  if (status == CaptureStatus::kNone) check(wait_for_stream(stream), operation);
}

}  // namespace

void Operation::started() {
  work_.started();
  note_started(name_);
  static const bool is_blocking = env().cuda_blocking.value;
  if (is_blocking || is_told_to_block.load(std::memory_order_relaxed))
    wait_for(name_, static_cast<StreamHandle>(stream_.handle));
}

void set_blocking(bool is_on) { is_told_to_block = is_on; }

}  // namespace cuop::backend::cuda
