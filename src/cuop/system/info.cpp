#include "cuop/system/info.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "cuop/backend/cpu/blas_library.h"
#include "cuop/backend/cpu/dnn.h"
#include "cuop/backend/cpu/fft.h"
#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/cuda/libraries.h"
#include "cuop/backend/cuda/nvml.h"
#include "cuop/backend/current_device.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/mpi.h"

namespace cuop {

namespace {

std::string gibibytes(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / 0x1p30);
  return text;
}

std::string system_name() {
  utsname name;
  if (uname(&name) != 0) return "unknown";
  return cat(name.sysname, ' ', name.release, ", ", name.machine);
}

void add_machine(std::vector<SystemPart>& parts) {
  const backend::Runtime& cpu = backend::runtime(kCpu);
  const backend::MemoryInfo memory = cpu.memory_info();
  parts.push_back({"system", true, system_name()});
  parts.push_back(
      {"CPU", true, cat(cpu.description(), ", kernels for ", isa::name(isa::current()))});
  parts.push_back(
      {"threads", true,
       cat(backend::thread_count(), " of ", std::thread::hardware_concurrency(), " cores")});
  parts.push_back(
      {"memory", true, cat(gibibytes(memory.free), " free of ", gibibytes(memory.total))});
}

void add_libraries(std::vector<SystemPart>& parts) {
  const backend::blas::Info& blas = backend::blas::info();
  parts.push_back(
      {"BLAS", blas.is_available,
       blas.is_available ? cat(blas.version, " (", blas.core, ") ", blas.path) : blas.reason});
  const backend::FftInfo fft = backend::fft_info();
  parts.push_back({"FFTW", fft.is_available, fft.description});
  const backend::dnn::Info& dnn = backend::dnn::info();
  parts.push_back({"oneDNN", dnn.is_available,
                   dnn.is_available ? cat(dnn.version, ' ', dnn.path) : dnn.reason});
  const std::string no_mpi = dist::mpi_unavailable_reason();
  parts.push_back(
      {"MPI", no_mpi.empty(), no_mpi.empty() ? "built for the MPI of this machine" : no_mpi});
  for (const backend::LibraryStatus& library : backend::cuda_libraries()) {
    const bool is_found = library.reason.empty();
    parts.push_back({library.title, is_found,
                     is_found ? cat(library.path, ' ', library.version) : library.reason});
  }
}

/// Who else holds memory of the GPU, as the management library knows.
SystemPart processes_part(Device device) {
  namespace cuda = backend::cuda;
  const std::string name = cat("processes on ", device);
  const cuda::Nvml& nvml = cuda::nvml();
  if (!nvml.absence().empty()) return {name, false, cat("NVML: ", nvml.absence())};
  try {
    const std::string& uuid = cuda::cuda_runtime(device).properties().uuid;
    return {name, true, cat("others: ", cuda::to_text(nvml.other_processes(uuid)))};
  } catch (const ExecutionError& error) {
    return {name, false, error.what()};
  }
}

/// A device that cannot be used says so in its own line.
void add_gpu(std::vector<SystemPart>& parts, Device device) {
  const std::string name = cat("GPU ", device.index);
  try {
    const backend::Runtime& gpu = backend::runtime(device);
    const backend::MemoryInfo memory = gpu.memory_info();
    parts.push_back({name, true,
                     cat(gpu.description(), ", ", gibibytes(memory.free), " free of ",
                         gibibytes(memory.total))});
    parts.push_back(processes_part(device));
  } catch (const Error& error) {
    parts.push_back({name, false, error.what()});
  }
}

void add_gpus(std::vector<SystemPart>& parts) {
  const int gpus = backend::device_count(DeviceType::kCuda);
  parts.push_back({"GPU", gpus > 0, gpus > 0 ? cat(gpus) : backend::cuda_absence_reason()});
  if (gpus == 0) return;
  const std::string driver = backend::cuda::nvml().driver_version();
  parts.push_back({"GPU driver", !driver.empty(), driver.empty() ? "NVML does not tell" : driver});
  for (int index = 0; index < gpus; ++index) add_gpu(parts, {DeviceType::kCuda, index});
}

}  // namespace

const char* version() { return CUOP_VERSION; }

std::vector<SystemPart> system_info() {
  std::vector<SystemPart> parts;
  add_machine(parts);
  add_libraries(parts);
  add_gpus(parts);
  const backend::DefaultDevice& chosen = backend::default_device();
  parts.push_back({"default device", true, cat(chosen.device, ": ", chosen.reason)});
  parts.push_back({"current device", true, cat(backend::current_device())});
  return parts;
}

void print_system_info(std::ostream& out) {
  out << "cuOP " << version() << '\n';
  const std::vector<SystemPart> parts = system_info();
  size_t width = 0;
  for (const SystemPart& part : parts) width = std::max(width, part.name.size());
  for (const SystemPart& part : parts) {
    out << part.name << std::string(width + 2 - part.name.size(), ' ')
        << (part.is_found ? "" : "absent: ") << part.detail << '\n';
  }
}

}  // namespace cuop
