#include "cuop/backend/cuda/operation.h"

#include <array>
#include <atomic>

#include "cuop/backend/cuda/blocking.h"
#include "cuop/backend/cuda/driver.h"
#include "cuop/backend/cuda/waiting.h"
#include "cuop/core/env.h"

namespace cuop::backend::cuda {

namespace {

constexpr unsigned kRemembered = 8;
std::array<std::atomic<const char*>, kRemembered> latest{};
std::atomic<unsigned> count = 0;
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
  const unsigned place = count.fetch_add(1, std::memory_order_relaxed) % kRemembered;
  latest[place].store(name_, std::memory_order_relaxed);
  static const bool is_blocking = env().cuda_blocking.value;
  if (is_blocking || is_told_to_block.load(std::memory_order_relaxed))
    wait_for(name_, static_cast<StreamHandle>(stream_.handle));
}

void set_blocking(bool is_on) { is_told_to_block = is_on; }

std::string recently_started() {
  std::string list;
  const unsigned end = count.load(std::memory_order_relaxed);
  for (unsigned i = 1; i <= kRemembered && i <= end; ++i) {
    const char* operation = latest[(end - i) % kRemembered].load(std::memory_order_relaxed);
    if (operation != nullptr) list += (list.empty() ? "" : ", ") + std::string(operation);
  }
  return list;
}

}  // namespace cuop::backend::cuda
