#include "cuop/executor/resources.h"

#include <algorithm>
#include <bit>

#include "cuop/backend/runtime.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/comm/launch.h"
#include "cuop/dist/comm/rank_team.h"
#include "cuop/dist/cost/machine_figures.h"
#include "cuop/dist/exec/call_frame.h"
#include "cuop/dist/exec/peer_link.h"
#include "cuop/dist/exec/rank_machine.h"
#include "cuop/dist/packed.h"
#include "cuop/dist/rank_device.h"
#include "cuop/memory/current.h"

namespace cuop::executor {
namespace {

/// Bytes of the device that are free or idle in our pool.
int64_t free_bytes(Device device) {
  const memory::Statistics pool = memory::whole_resource(device).statistics();
  int64_t bytes = backend::runtime(device).memory_info().free + pool.cached_bytes;
  if (pool.capacity_bytes > 0) {
    bytes = std::min(bytes, pool.capacity_bytes - pool.allocated_bytes);
  }
  return std::max<int64_t>(0, bytes);
}

/// Down by less than a 32nd: what is free differs a little from call to call, and calls that may
/// use the same have the same plan (`plan_once`).
int64_t in_coarse_steps(int64_t bytes) {
  const auto step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes)) / 32);
  return step > 0 ? bytes / step * step : bytes;
}

int64_t usable_of(int64_t free, const MemoryLimits& limits, int sharers) {
  const double part = (1.0 - limits.safety_margin) / std::max(1, sharers);
  const int64_t usable = in_coarse_steps(static_cast<int64_t>(static_cast<double>(free) * part));
  return limits.per_device ? std::min(usable, *limits.per_device) : usable;
}

/// Each rank's host and device.
std::vector<std::string> places_of(dist::Communicator& comm, Device device) {
  return dist::gather_texts(comm, cat(dist::host_name(), ' ', device));
}

/// Ranks of each rank's device, this one's included.
std::vector<int> sharers_of(const std::vector<std::string>& places) {
  std::vector<int> result;
  for (const std::string& place : places) {
    result.push_back(static_cast<int>(std::count(places.begin(), places.end(), place)));
  }
  return result;
}

/// Bytes a second from one rank's GPU to another where each reads the others' memory, all being of
/// this host; 0 elsewhere.
double between_devices(dist::Communicator& comm, Device device,
                       const std::vector<std::string>& places) {
  const bool is_one_host = comm.local_size() == comm.size();
  if (comm.size() == 1 || !is_one_host || device.is_cpu()) return 0;
  if (!env().peer_mapping.value) return 0;
  if (comm.kind() != "thread") return dist::peer_bandwidth(comm, device);
  std::vector<Device> peers;  // the next first
  for (int step = 1; step < comm.size(); ++step) {
    const std::string& place = places[static_cast<size_t>((comm.rank() + step) % comm.size())];
    peers.push_back(parse_device(place.substr(place.rfind(' ') + 1)));
  }
  const bool has_links =
      std::ranges::all_of(peers, [&](Device peer) { return backend::runtime(device).reads(peer); });
  if (!dist::agree_all(comm, has_links)) return 0;
  return dist::agree_min(comm, dist::link_bandwidth(device, peers[0]));
}

/// What the ranks have measured together, else what the root assumes.
dist::Machine device_figures(dist::Communicator& comm, Device device) {
  if (const auto& agreed = comm.figures(dist::figures_of(device))) return *agreed;
  const dist::Machine mine = dist::rank_machine(device, false);
  if (comm.size() == 1) return mine;
  const std::string text = dist::broadcast_text(comm, dist::to_text(mine), 0);
  const std::optional<dist::Machine> machine = dist::machine_from(text);
  if (!machine) throw CommunicationError("figures of the root's device cannot be read", 0);
  return *machine;
}

/// What work takes on any of the ranks' devices.
WorkFigures agreed_figures(dist::Communicator& comm, Device device) {
  WorkFigures figures = work_figures(device);
  figures.multiprocessors =
      static_cast<int>(dist::agree_max(comm, int64_t{figures.multiprocessors}));
  figures.splits_products = dist::agree_max(comm, int64_t{figures.splits_products}) != 0;
  return figures;
}

}  // namespace

void check_limits(const MemoryLimits& limits, const char* who) {
  if (!(limits.safety_margin >= 0.0 && limits.safety_margin < 1.0)) {
    throw ExecutionError(cat(who, ": the safety margin is ", limits.safety_margin,
                             "; it must be at least 0 and below 1"));
  }
  if (limits.per_device && *limits.per_device <= 0) {
    throw ExecutionError(cat(who, ": a limit of ", *limits.per_device,
                             " bytes a device was given; it must be above 0"));
  }
}

Device work_device(dist::Communicator& comm) { return dist::rank_device(comm, comm.have_gpus()); }

int own_gpus(const dist::Communicator& comm) {
  return comm.size() == 1 ? std::max(1, backend::device_count(DeviceType::kCuda)) : 1;
}

std::vector<DeviceStatus> scan_devices(dist::Communicator& comm, const MemoryLimits& limits) {
  const int gpus = own_gpus(comm);
  if (gpus > 1) {
    std::vector<DeviceStatus> found;
    dist::run_on_team(gpus, Device{DeviceType::kCuda, 0}, [&](const dist::CommunicatorPtr& team) {
      const std::vector<DeviceStatus> all = scan_devices(*team, limits);
      if (team->rank() == 0) found = all;
    });
    return found;
  }
  const Device device = work_device(comm);
  const backend::MemoryInfo info = backend::runtime(device).memory_info();
  const std::vector<int> sharers = sharers_of(places_of(comm, device));
  dist::Packer packer;
  packer.put(device.is_cpu() ? -1 : device.index);
  packer.put(info.total);
  const int64_t free = free_bytes(device);
  packer.put(free);
  packer.put(usable_of(free, limits, sharers[static_cast<size_t>(comm.rank())]));
  packer.append(backend::runtime(device).description());
  std::vector<DeviceStatus> result;
  for (const std::string& bytes : dist::gather_texts(comm, packer.bytes())) {
    dist::Unpacker unpacker("memory of the ranks", bytes);
    DeviceStatus status;
    status.rank = static_cast<int>(result.size());
    const int64_t index = unpacker.number();
    status.device = index < 0 ? kCpu : Device{DeviceType::kCuda, static_cast<int>(index)};
    status.total = unpacker.number();
    status.free = unpacker.number();
    status.usable = unpacker.number();
    status.name = unpacker.rest();
    result.push_back(std::move(status));
  }
  return result;
}

int64_t usable_now(Device device, const MemoryLimits& limits, int sharers) {
  return usable_of(free_bytes(device), limits, sharers);
}

TileMachine tile_machine(dist::Communicator& comm, Device device, const MemoryLimits& limits,
                         dist::HostPages pages) {
  const std::vector<std::string> places = places_of(comm, device);
  const int mine = sharers_of(places)[static_cast<size_t>(comm.rank())];
  TileMachine machine;
  machine.devices = comm.size();
  machine.memory = dist::agree_min(comm, usable_now(device, limits, mine));
  const dist::HostLink link = dist::host_link(comm, device, pages);
  // Ranks that compute on the host copy within it, and were not timed together.
  const int takers = device.is_cpu() ? mine : 1;
  machine.upload = dist::agree_min(comm, link.upload / takers);
  machine.download = dist::agree_min(comm, link.download / takers);
  machine.duplex = dist::agree_min(comm, link.duplex);
  machine.stretch = link.stretch;  // the same on all ranks
  machine.between = between_devices(comm, device, places);
  machine.device = device_figures(comm, device);
  machine.figures = agreed_figures(comm, device);
  return machine;
}

}  // namespace cuop::executor
