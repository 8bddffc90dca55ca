// What is known of a device that has kernels of its own.
#pragma once

#include <cstdint>
#include <string>

namespace cuop::backend {

/// What kernels and their tuning need to know of a device; sizes in bytes.
struct DeviceProperties {
  std::string name;
  std::string uuid;  ///< "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
  int major = 0;     ///< compute capability
  int minor = 0;
  int multiprocessors = 0;
  int warp_size = 32;
  int max_threads_per_block = 0;
  int64_t shared_per_block = 0;        ///< without asking
  int64_t shared_per_block_optin = 0;  ///< for kernels that ask for it
  int64_t l2_bytes = 0;
  int64_t total_bytes = 0;
  int clock_khz = 0;
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
  int driver_version = 0;  ///< 13000 for 13.0
};

}  // namespace cuop::backend
