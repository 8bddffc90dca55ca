#include "cuop/backend/cuda/nvml.h"

#include <unistd.h>

#include <fstream>

#include "cuop/backend/cuda/libraries.h"
#include "cuop/core/byte_size.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::backend::cuda {

namespace {

constexpr int kSuccess = 0, kInsufficientSize = 7;
constexpr unsigned long long kNotAvailable = ~0ULL;
constexpr unsigned kSpare = 8;  // processes that may start between two questions

std::string name_of(int64_t pid) {
  std::ifstream in(cat("/proc/", pid, "/comm"));
  std::string name;
  std::getline(in, name);
  return name;
}

}  // namespace

Nvml::Nvml(const DynLib& library) {
  if (!library.is_loaded()) {
    absence_ = library.reason();
    return;
  }
  const auto bind = [&]<class Function>(Function*& entry, const char* name) {
    entry = reinterpret_cast<Function*>(library.find(name));
    if (entry == nullptr && absence_.empty()) absence_ = cat(library.path(), " has no ", name);
  };
  bind(init_, "nvmlInit_v2");
  bind(error_string_, "nvmlErrorString");
  bind(get_driver_version_, "nvmlSystemGetDriverVersion");
  bind(get_handle_by_uuid_, "nvmlDeviceGetHandleByUUID");
  bind(get_compute_processes_, "nvmlDeviceGetComputeRunningProcesses_v3");
  if (!absence_.empty()) return;
  const Status status = init_();
  if (status != kSuccess) absence_ = cat("its start: ", error_string_(status));
}

void Nvml::check(Status status, const char* what) const {
  if (status != kSuccess) throw ExecutionError(cat("NVML: ", what, ": ", error_string_(status)));
}

std::string Nvml::driver_version() const {
  char text[96] = {};
  if (!absence_.empty() || get_driver_version_(text, sizeof text) != kSuccess) return "";
  return text;
}

std::vector<GpuProcess> Nvml::other_processes(const std::string& uuid) const {
  if (!absence_.empty()) throw ExecutionError(cat("NVML: ", absence_));
  DeviceHandle device = nullptr;
  check(get_handle_by_uuid_(uuid.c_str(), &device), uuid.c_str());
  unsigned count = 0;
  Status status = get_compute_processes_(device, &count, nullptr);
  std::vector<ProcessInfo> infos;
  while (status == kInsufficientSize) {
    count += kSpare;
    infos.resize(count);
    status = get_compute_processes_(device, &count, infos.data());
  }
  check(status, "the processes");
  infos.resize(count);
  std::vector<GpuProcess> processes;
  for (const ProcessInfo& info : infos) {
    if (info.pid == static_cast<unsigned>(getpid())) continue;
    const bool is_known = info.used_bytes != kNotAvailable;
    processes.push_back(
        {info.pid, is_known ? static_cast<int64_t>(info.used_bytes) : -1, name_of(info.pid)});
  }
  return processes;
}

const Nvml& nvml() {
  // Never destroyed: threads may compute while the process ends.
  static const Nvml& instance = *new Nvml(cuda_library(CudaLibrary::kNvml));
  return instance;
}

std::string to_text(const std::vector<GpuProcess>& processes) {
  std::vector<std::string> parts;
  for (const GpuProcess& process : processes) {
    const std::string pid = cat("pid ", process.pid);
    const std::string who = process.name.empty() ? pid : cat(process.name, " (", pid, ")");
    parts.push_back(
        cat(who, " holds ", process.bytes < 0 ? "an unknown amount" : format_bytes(process.bytes)));
  }
  return parts.empty() ? "none" : join(parts);
}

}  // namespace cuop::backend::cuda
