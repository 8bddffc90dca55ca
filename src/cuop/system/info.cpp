#include "cuop/system/info.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "cuop/backend/cpu/blas.h"
#include "cuop/backend/cpu/dnn.h"
#include "cuop/backend/cpu/fft.h"
#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/cuda/libraries.h"
#include "cuop/backend/runtime.h"
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

}  // namespace

const char* version() { return CUOP_VERSION; }

std::vector<SystemPart> system_info() {
  std::vector<SystemPart> parts;
  add_machine(parts);
  add_libraries(parts);
  const int gpus = backend::device_count(DeviceType::kCuda);
  parts.push_back({"GPU", gpus > 0, gpus > 0 ? cat(gpus) : backend::cuda_absence_reason()});
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
