#include "cuop/memory/host_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include "cuop/core/text.h"

namespace cuop::memory {

namespace {

/// Bytes of /proc/meminfo's MemAvailable, which counts caches that the kernel would drop.
int64_t available_bytes() {
  std::ifstream in("/proc/meminfo");
  std::string key, unit;
  int64_t kib = 0;
  while (in >> key >> kib && std::getline(in, unit)) {
    if (key == "MemAvailable:") return kib * 1024;
  }
  return static_cast<int64_t>(sysconf(_SC_AVPHYS_PAGES)) *
         static_cast<int64_t>(sysconf(_SC_PAGESIZE));
}

/// The number that a file holds; none for "max" and where there is no such file.
std::optional<int64_t> number_in(const std::string& file) {
  std::ifstream in(file);
  int64_t number = 0;
  if (in >> number) return number;
  return std::nullopt;
}

/// The value of a "key 123" line; 0 without it.
int64_t line_of(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  std::string name;
  for (int64_t number = 0; in >> name >> number;) {
    if (name == key) return number;
  }
  return 0;
}

/// The files of one version of control groups.
struct Controller {
  std::string mount, limit, used, idle_files;
};

/// Cuts `memory` to a group's limit. File caches that have not been used for long count as free.
void cut_to_group(DeviceMemory& memory, const Controller& controller, const std::string& group) {
  const std::string folder = cat(controller.mount, group, '/');
  const auto limit = number_in(folder + controller.limit);
  if (!limit) return;
  memory.total = std::min(memory.total, *limit);
  const int64_t used = number_in(folder + controller.used).value_or(0) -
                       line_of(folder + "memory.stat", controller.idle_files);
  memory.free = std::clamp(*limit - used, int64_t{0}, memory.free);
}

}  // namespace

DeviceMemory within_control_groups(DeviceMemory machine, const std::string& root) {
  const std::string mounts = root + "/sys/fs/cgroup";
  std::ifstream in(root + "/proc/self/cgroup");  // lines of "number:controllers:/path"
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = cat(',', line.substr(first + 1, second - first - 1), ',');
    Controller controller;
    if (controllers == ",,") {
      controller = {mounts, "memory.max", "memory.current", "inactive_file"};
    } else if (controllers.find(",memory,") != std::string::npos) {
      controller = {mounts + "/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                    "total_inactive_file"};
    } else {
      continue;
    }
    // The group itself and all around it. In a container the path may be that of the host, of
    // which only the top is there.
    std::string group = line.substr(second + 1);
    for (; group.rfind('/') != std::string::npos; group.resize(group.rfind('/'))) {
      if (group != "/") cut_to_group(machine, controller, group);
    }
    cut_to_group(machine, controller, "");
  }
  return machine;
}

DeviceMemory host_memory_now(const std::string& root) {
  const int64_t machine =
      static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  DeviceMemory memory = within_control_groups({available_bytes(), machine}, root);
  memory.total = std::min(memory.total, address_space_limit());
  memory.free = std::min(memory.free, memory.total);
  return memory;
}

DeviceMemory host_memory() {
  const DeviceMemory memory = host_memory_now("");
  static const int64_t total = memory.total;
  return {std::min(memory.free, total), total};
}

int64_t address_space_limit() {
  rlimit limit{};
  const bool is_limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
                          limit.rlim_cur < static_cast<rlim_t>(std::numeric_limits<int64_t>::max());
  return is_limited ? static_cast<int64_t>(limit.rlim_cur) : std::numeric_limits<int64_t>::max();
}

}  // namespace cuop::memory
