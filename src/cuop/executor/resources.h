// The memory that work may use: what the driver or the system reports as free (other processes' use
// included), and what is idle in our own pool, less a margin.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cuop/dist/comm/communicator.h"
#include "cuop/executor/tile_plan.h"

namespace cuop::dist {
enum class HostPages : uint8_t;
}  // namespace cuop::dist

namespace cuop::executor {

struct MemoryLimits {
  double safety_margin = 0.2;              ///< part of what is free that is left alone
  std::optional<int64_t> per_device = {};  ///< bytes, beside what is free
};

/// One rank's device.
struct DeviceStatus {
  int rank = 0;
  Device device = kCpu;
  std::string name;
  int64_t total = 0;
  int64_t free = 0;    ///< of the whole device, or of the host
  int64_t usable = 0;  ///< by this rank's work
};

/// ExecutionError unless 0 <= margin < 1 and the limit is above 0.
void check_limits(const MemoryLimits& limits, const char* who);

/// Where the ranks work on arrays of the host: each on its GPU, or all on the host where a rank has
/// none. Collective when it is asked for the first time.
Device work_device(dist::Communicator& comm);

/// GPUs that a process, the only rank, has for itself; 1 where there are several ranks.
int own_gpus(const dist::Communicator& comm);

/// Collective: of every rank, in rank order, or of all GPUs of a plain process. Ranks that share a
/// device share what is free of it.
std::vector<DeviceStatus> scan_devices(dist::Communicator& comm, const MemoryLimits& limits);

/// What can be used of the device now by one of `sharers`, without asking other ranks.
int64_t usable_now(Device device, const MemoryLimits& limits, int sharers);

/// Collective: the same figures on every rank: the least memory, the slowest device and link.
/// Copies from and to such memory of the host are timed once a process and device, all ranks at a
/// time.
TileMachine tile_machine(dist::Communicator& comm, Device device, const MemoryLimits& limits,
                         dist::HostPages pages);

}  // namespace cuop::executor
