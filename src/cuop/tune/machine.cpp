#include "cuop/tune/machine.h"

#include <unordered_map>

#include "cuop/backend/cpu/blas_library.h"
#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/device_properties.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/of_thread.h"
#include "cuop/core/text.h"

namespace cuop::tune {

namespace {

const std::string& cpu_text() {
  // Never destroyed: threads may compute while the process ends.
  static const std::string& text = *[] {
    const auto& blas = backend::blas::info();
    return new std::string(cat(isa::name(isa::current()), ' ', blas.version, ' ', blas.core));
  }();
  return text;
}

/// Kept by each thread: the text is part of the key of every call of a JIT wrapper.
const std::string& gpu_text(Device device) {
  auto& texts = of_thread([] { return new std::unordered_map<int, std::string>; });
  std::string& text = texts[device.index];
  if (text.empty()) {
    const auto& properties = backend::runtime(device).properties();
    text = cat(properties.name, ", ", properties.multiprocessors, " multiprocessors, memory at ",
               properties.memory_clock_khz, " kHz, driver ", properties.driver_version);
  }
  return text;
}

}  // namespace

std::string machine_text(Device device) {
  if (!device.is_cpu()) return gpu_text(device);
  std::string text = "cpu, threads ";
  return text.append(std::to_string(backend::thread_count())).append(", ").append(cpu_text());
}

}  // namespace cuop::tune
