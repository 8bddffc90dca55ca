// How much memory this process may use on the host.
#pragma once

#include <string>

#include "cuop/memory/upstream.h"

namespace cuop::memory {

/// The machine's memory, or what the process's control group may use of it: free is what the system
/// could give without swapping, total does not change while the process runs.
DeviceMemory host_memory();
/// The same, read anew, with the control groups below `root`.
DeviceMemory host_memory_now(const std::string& root);

/// The machine's figures cut to the limits of the process's control groups (version 2, or the
/// memory controller of version 1) and of all groups around it, which are read below `root`.
DeviceMemory within_control_groups(DeviceMemory machine, const std::string& root = "");

/// Bytes of addresses that the process may take (RLIMIT_AS); the largest number without a limit.
int64_t address_space_limit();

}  // namespace cuop::memory
