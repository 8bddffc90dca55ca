// What kernels compiled for the simulated device and the code that runs them agree on. Kernel text
// has no standard headers, so this includes none.
#pragma once

namespace cuop::simulator {

struct Index3 {
  unsigned x = 0, y = 0, z = 0;
};

/// Lanes that exchange values wait for each other, but see nothing of each other's memory by that.
enum class Group : int { kBlock, kWarp, kExchange };

/// What a thread does with memory; a fence is of all of it.
enum class Access : int { kRead, kWrite, kAtomic, kFence };

/// The thread of a kernel that runs, and what it may ask for.
struct Running {
  Index3 thread, block, block_size, grid;
  unsigned long long clock = 0;
  /// Returns when all threads of the block, or the named lanes of the thread's warp, have come.
  void (*meet)(Group group, unsigned lanes, const char* file, int line) = nullptr;
  /// Ends the launch with an error.
  void (*refuse)(const char* what, const void* address, unsigned long bytes) = nullptr;
  /// 16 bytes of every thread of the block, in which it hands a value to its warp.
  unsigned char* exchange = nullptr;

  /// Told of each access that is allowed; null when nobody looks for races.
  void (*watch)(Access access, const void* address, unsigned long bytes) = nullptr;
  bool is_atomic = false;  ///< what is accessed now, is by an atomic function

  /// Addresses that belong to devices, and for every 512 bytes of them which devices reach them and
  /// how many of them, from the first, are there.
  unsigned long window = 0, window_bytes = 0;
  const unsigned char* reachable = nullptr;
  const unsigned short* present = nullptr;
  unsigned char device_bit = 0;
  /// The stacks of the block's threads.
  unsigned long stacks = 0, stacks_bytes = 0;
  /// Whether the bytes are page-locked host memory that the device reaches too.
  bool (*is_registered)(const void* address, unsigned long bytes) = nullptr;
};

inline constexpr unsigned long kReachableGranule = 512;

/// What the binary of a kernel tells about it, under the name kKernelPrefix + the kernel's.
struct KernelInfo {
  void (*call)(void** arguments);
  int argument_count;
  const unsigned* argument_bytes;
  unsigned max_threads;  ///< of a block; 0: as many as the device allows
  Running* running;
  unsigned char* shared_begin;  ///< the shared memory of a block
  unsigned char* shared_end;
};

}  // namespace cuop::simulator
