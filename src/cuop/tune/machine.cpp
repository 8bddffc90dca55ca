#include "cuop/tune/machine.h"

#include "cuop/backend/cpu/blas.h"
#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/core/text.h"

namespace cuop::tune {

namespace {

const std::string& cpu_text() {
  static const std::string text = [] {
    const auto& blas = backend::blas::info();
    return cat(isa::name(isa::current()), ' ', blas.version, ' ', blas.core);
  }();
  return text;
}

}  // namespace

std::string machine_text(Device device) {
  if (device.is_cpu()) return cat("cpu, threads ", backend::thread_count(), ", ", cpu_text());
  const auto& properties = backend::cuda::cuda_runtime(device).properties();
  return cat(properties.name, ", ", properties.multiprocessors, " multiprocessors, memory at ",
             properties.memory_clock_khz, " kHz, driver ", backend::cuda::driver().version);
}

}  // namespace cuop::tune
