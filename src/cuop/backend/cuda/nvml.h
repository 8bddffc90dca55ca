// NVIDIA's management library, for what the driver does not tell: its version by name, and who else
// holds a GPU's memory. Opened on first use; absent is a state with a reason.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuop/core/dynlib.h"

namespace cuop::backend::cuda {

/// A process that computes on a GPU.
struct GpuProcess {
  int64_t pid = 0;     ///< as the host numbers it, which a container may not
  int64_t bytes = -1;  ///< of the GPU's memory; -1 where the driver does not tell
  std::string name;    ///< of its program; "" where this process cannot see it
};

class Nvml {
 public:
  /// Begins to use a library that stays open as long as the process.
  explicit Nvml(const DynLib& library);

  /// Why it cannot be asked; "" when it can.
  const std::string& absence() const { return absence_; }
  /// The driver's version as its package has it, "580.95.05"; "" when that cannot be told.
  std::string driver_version() const;
  /// The processes on the GPU of that UUID ("GPU-..."), this one left out. ExecutionError that says
  /// what the library answered when it cannot tell.
  std::vector<GpuProcess> other_processes(const std::string& uuid) const;

 private:
  using Status = int;
  using DeviceHandle = struct NvmlDeviceState*;
  struct ProcessInfo {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance;
    unsigned compute_instance;
  };
  void check(Status status, const char* what) const;

  Status (*init_)() = nullptr;
  const char* (*error_string_)(Status) = nullptr;
  Status (*get_driver_version_)(char*, unsigned) = nullptr;
  Status (*get_handle_by_uuid_)(const char*, DeviceHandle*) = nullptr;
  Status (*get_compute_processes_)(DeviceHandle, unsigned*, ProcessInfo*) = nullptr;
  std::string absence_;
};

/// The process's one.
const Nvml& nvml();

/// "python (pid 17) holds 2 GiB, pid 18 holds an unknown amount"; "none" for none.
std::string to_text(const std::vector<GpuProcess>& processes);

}  // namespace cuop::backend::cuda
