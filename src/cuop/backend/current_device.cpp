#include "cuop/backend/current_device.h"

#include <atomic>
#include <optional>

#include "cuop/backend/cuda/driver.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/log.h"
#include "cuop/core/text.h"

namespace cuop::backend {

namespace {

thread_local std::optional<Device> chosen;

constinit std::atomic<std::string (*)(Device)> kernel_check = nullptr;
constinit std::atomic<int (*)()> gpu_preference = nullptr;

void warn(const std::string& problem) {
  log(LogLevel::kWarn, problem, "; new tensors are made elsewhere. CUOP_DEVICE=cpu says that this ",
      "is wanted, CUOP_DEVICE=cuda makes it an error");
}

/// Why nothing can be computed on a device of the driver's; "" when it can.
std::string problem_of(Device device) {
  try {
    runtime(device);
    const auto check = kernel_check.load();
    const std::string reason = check != nullptr ? check(device) : "";
    return reason.empty() ? "" : cat(device, " has no use without kernels: ", reason);
  } catch (const Error& error) {
    return error.what();
  }
}

int preferred_gpu() {
  const auto preference = gpu_preference.load();
  return preference != nullptr ? preference() : 0;
}

DefaultDevice first_usable() {
  if (!cuda::driver_absence().empty()) {
    if (cuda::is_driver_broken()) warn(cuda::driver_absence());
    return {kCpu, cat("no GPU can be used: ", cuda::driver_absence())};
  }
  std::string problems;
  const int count = device_count(DeviceType::kCuda);
  const int first = preferred_gpu();
  for (int tried = 0; tried < count; ++tried) {
    const Device device{DeviceType::kCuda, (first + tried) % count};
    const std::string problem = problem_of(device);
    if (problem.empty()) {
      return {device, cat("the first GPU that can be used, of ", count,
                          first == 0 ? "" : cat(" from that of this host's rank ", first, " on"),
                          "; CUOP_DEVICE=cpu makes it the CPU")};
    }
    warn(problem);
    problems += (problems.empty() ? "" : "; ") + problem;
  }
  return {kCpu, cat("no GPU can be used: ", problems)};
}

DefaultDevice choose() {
  const std::string& text = env().device.value;
  if (text == "auto") return first_usable();
  Device device = parse_device(text);
  const int count = device_count(device.type);
  if (text == "cuda" && count > 0) device.index = preferred_gpu() % count;
  runtime(device);  // a device that is absent is said at once
  return {device, cat("CUOP_DEVICE=", text)};
}

}  // namespace

const DefaultDevice& default_device() {
  // Never destroyed: threads may compute while the process ends.
  static const DefaultDevice& result = *new DefaultDevice(choose());
  return result;
}

void set_gpu_preference(int (*preferred)()) { gpu_preference = preferred; }

void set_kernel_check(std::string (*absence_of_kernels)(Device)) {
  kernel_check = absence_of_kernels;
}

Device current_device() { return chosen ? *chosen : default_device().device; }

void set_current_device(Device device) {
  runtime(device);
  chosen = device;
}

Device current_gpu() {
  if (chosen && !chosen->is_cpu()) return *chosen;
  const int preferred = preferred_gpu();
  const int count = preferred > 0 ? device_count(DeviceType::kCuda) : 0;
  return {DeviceType::kCuda, count > 0 ? preferred % count : 0};
}

}  // namespace cuop::backend
