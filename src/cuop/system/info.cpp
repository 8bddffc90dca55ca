#include "cuop/system/info.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

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

/// The parts of this machine. One that cannot be told about, as what was asked for is not there,
/// says so in its own line.
class Parts {
 public:
  /// describe() returns whether it is there, and what it is or why it is not.
  template <class Describe>
  void add(const std::string& name, const Describe& describe) {
    attempt(name, [&] {
      const std::pair<bool, std::string> found = describe();
      all_.push_back({name, found.first, found.second});
    });
  }
  template <class Work>
  void attempt(const std::string& name, const Work& work) {
    try {
      work();
    } catch (const Error& error) {
      all_.push_back({name, false, error.what()});
    }
  }
  std::vector<SystemPart> take() { return std::move(all_); }

 private:
  std::vector<SystemPart> all_;
};
using Found = std::pair<bool, std::string>;

std::string text_of(const backend::MemoryInfo& memory) {
  return cat(gibibytes(memory.free), " free of ", gibibytes(memory.total));
}

void add_machine(Parts& parts) {
  parts.add("system", [] { return Found{true, system_name()}; });
  parts.add("CPU", [] {
    return Found{true, cat(backend::runtime(kCpu).description(), ", kernels for ",
                           isa::name(isa::current()))};
  });
  parts.add("threads", [] {
    return Found{
        true, cat(backend::thread_count(), " of ", std::thread::hardware_concurrency(), " cores")};
  });
  parts.add("memory", [] { return Found{true, text_of(backend::runtime(kCpu).memory_info())}; });
}

void add_libraries(Parts& parts) {
  parts.add("BLAS", [] {
    const backend::blas::Info& blas = backend::blas::info();
    return Found{blas.is_available, blas.is_available
                                        ? cat(blas.version, " (", blas.core, ") ", blas.path)
                                        : blas.reason};
  });
  parts.add("FFTW", [] {
    const backend::FftInfo fft = backend::fft_info();
    return Found{fft.is_available, fft.description};
  });
  parts.add("oneDNN", [] {
    const backend::dnn::Info& dnn = backend::dnn::info();
    return Found{dnn.is_available, dnn.is_available ? cat(dnn.version, ' ', dnn.path) : dnn.reason};
  });
  parts.add("MPI", [] {
    const std::string no_mpi = dist::mpi_unavailable_reason();
    return Found{no_mpi.empty(), no_mpi.empty() ? "built for the MPI of this machine" : no_mpi};
  });
  parts.attempt("CUDA libraries", [&] {
    for (const backend::LibraryStatus& library : backend::cuda_libraries()) {
      const bool is_found = library.reason.empty();
      parts.add(library.title, [&] {
        return Found{is_found, is_found ? cat(library.path, ' ', library.version) : library.reason};
      });
    }
  });
}

/// Who else holds memory of the GPU, as the management library knows.
Found processes_on(Device device) {
  namespace cuda = backend::cuda;
  const cuda::Nvml& nvml = cuda::nvml();
  if (!nvml.absence().empty()) return {false, cat("NVML: ", nvml.absence())};
  const std::string& uuid = cuda::cuda_runtime(device).properties().uuid;
  return {true, cat("others: ", cuda::to_text(nvml.other_processes(uuid)))};
}

void add_gpus(Parts& parts) {
  int gpus = 0;
  parts.add("GPU", [&] {
    gpus = backend::device_count(DeviceType::kCuda);
    return Found{gpus > 0, gpus > 0 ? cat(gpus) : backend::cuda_absence_reason()};
  });
  if (gpus == 0) return;
  parts.add("GPU driver", [] {
    const std::string driver = backend::cuda::nvml().driver_version();
    return Found{!driver.empty(), driver.empty() ? "NVML does not tell" : driver};
  });
  for (int index = 0; index < gpus; ++index) {
    const Device device{DeviceType::kCuda, index};
    bool is_usable = false;
    parts.add(cat("GPU ", index), [&] {
      const backend::Runtime& gpu = backend::runtime(device);
      const Found found{true, cat(gpu.description(), ", ", text_of(gpu.memory_info()))};
      is_usable = true;
      return found;
    });
    if (is_usable) parts.add(cat("processes on ", device), [&] { return processes_on(device); });
  }
}

}  // namespace

const char* version() { return CUOP_VERSION; }

std::vector<SystemPart> system_info() {
  Parts parts;
  add_machine(parts);
  add_libraries(parts);
  add_gpus(parts);
  parts.add("default device", [] {
    const backend::DefaultDevice& chosen = backend::default_device();
    return Found{true, cat(chosen.device, ": ", chosen.reason)};
  });
  parts.add("current device", [] { return Found{true, cat(backend::current_device())}; });
  return parts.take();
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
