// The part of the CUDA driver's binary interface that cuOP uses, declared here so that no CUDA
// header is needed to build. Sizes and numbers are those of the CUDA driver API, version 12 and
// later, on 64-bit Linux.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuop::backend::cuda {

using DeviceId = int;
using DevicePointer = uint64_t;
using MemoryHandle = uint64_t;  ///< physical memory made by mem_create
using ContextHandle = struct ContextState*;
using StreamHandle = struct StreamState*;
using EventHandle = struct EventState*;
using ModuleHandle = struct ModuleState*;
using FunctionHandle = struct FunctionState*;
using LibraryHandle = struct LibraryState*;
using KernelHandle = struct KernelState*;
using GraphHandle = struct GraphState*;
using GraphNodeHandle = struct GraphNodeState*;
using GraphExecHandle = struct GraphExecState*;
using MemoryPoolHandle = struct MemoryPoolState*;

/// CUDA_MEMCPY2D: rows of bytes that begin a pitch apart.
struct Copy2d {
  /// Any memory of the unified address space.
  static constexpr int kUnified = 4;
  struct Side {
    size_t first_byte = 0, first_row = 0;
    int memory_type = kUnified;
    const void* host = nullptr;
    DevicePointer address = 0;
    void* array = nullptr;
    size_t pitch = 0;
  };
  Side from, to;
  size_t row_bytes = 0, rows = 0;
};
static_assert(sizeof(Copy2d) == 128);

/// The statuses that cuOP tells apart; every other one has a name from the driver.
enum class Result : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kStubLibrary = 34,
  kRequiresNewerDriver = 36,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kEccUncorrectable = 214,
  kInvalidPtx = 218,
  kNvlinkUncorrectable = 220,
  kJitCompilerNotFound = 221,
  kUnsupportedPtxVersion = 222,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchTimeout = 702,
  kPeerAccessAlreadyEnabled = 704,
  kAssert = 710,
  kHardwareStackError = 714,
  kLaunchFailed = 719,
  kNotSupported = 801,
  kSystemNotReady = 802,
  kSystemDriverMismatch = 803,
  kCompatNotSupported = 804,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kGraphExecUpdateFailure = 910,
  kUnknown = 999,
};

enum class DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kMaxGridX = 5,
  kMaxGridY = 6,
  kMaxGridZ = 7,
  kMaxSharedMemoryPerBlock = 8,
  kWarpSize = 10,
  kMaxRegistersPerBlock = 12,
  kClockKhz = 13,
  kMultiprocessorCount = 16,
  kComputeMode = 20,
  kEccEnabled = 32,
  kPciBusId = 33,
  kPciDeviceId = 34,
  kMemoryClockKhz = 36,
  kMemoryBusBits = 37,
  kL2CacheBytes = 38,
  kMaxThreadsPerMultiprocessor = 39,
  kUnifiedAddressing = 41,
  kPciDomainId = 50,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerMultiprocessor = 81,
  kMaxRegistersPerMultiprocessor = 82,
  kCooperativeLaunch = 95,
  kMaxSharedMemoryPerBlockOptin = 97,
  kHostRegister = 99,
  kVirtualMemoryManagement = 102,
  kPosixFileDescriptors = 103,  ///< memory of mem_create can be exported as one
  kMaxBlocksPerMultiprocessor = 106,
  kReservedSharedMemoryPerBlock = 111,
  kMemoryPools = 115,
};

enum class FunctionAttribute : int {
  kMaxThreadsPerBlock = 0,
  kStaticSharedBytes = 1,
  kLocalBytes = 3,  ///< a thread's stack and spilled registers
  kRegisters = 4,
  kPtxVersion = 5,
  kBinaryVersion = 6,
  kMaxDynamicSharedBytes = 8,
};

enum class PointerAttribute : int {
  kContext = 1,
  kMemoryType = 2,
  kDevicePointer = 3,
  kHostPointer = 4,
  kBufferId = 7,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kRangeStart = 11,
  kRangeBytes = 12,
  kAccessFlags = 16,  ///< of the current context's device: AccessFlags
};
enum class MemoryType : int { kUnregistered = 0, kHost = 1, kDevice = 2 };

enum StreamFlags : unsigned { kStreamDefault = 0, kStreamNonBlocking = 1 };
enum EventFlags : unsigned { kEventDefault = 0, kEventDisableTiming = 2 };
enum HostAllocFlags : unsigned { kHostPortable = 1, kHostMapped = 2 };
/// The difference of what stands in memory and the value, as a signed number, is 0 or more.
enum WaitValueFlags : unsigned { kWaitReached = 0 };
/// Behind a fence for the whole system: who sees the value sees what the stream wrote before.
enum WriteValueFlags : unsigned { kWriteBehindFence = 0 };

/// The stream that orders itself against all blocking streams, and the calling thread's own.
inline const StreamHandle kLegacyStream = reinterpret_cast<StreamHandle>(uintptr_t{1});
inline const StreamHandle kPerThreadStream = reinterpret_cast<StreamHandle>(uintptr_t{2});

enum class CaptureMode : int { kGlobal = 0, kRelaxed = 2 };
enum class CaptureStatus : int { kNone = 0, kActive = 1, kInvalidated = 2 };

enum class LocationType : int { kInvalid = 0, kDevice = 1, kHost = 2 };
struct MemoryLocation {
  LocationType type = LocationType::kInvalid;
  int id = 0;
};
enum class AllocationType : int { kInvalid = 0, kPinned = 1 };
enum class ShareableHandle : int { kNone = 0, kPosixFileDescriptor = 1 };
struct AllocationProperties {
  AllocationType type = AllocationType::kPinned;
  ShareableHandle handle_types = ShareableHandle::kNone;
  MemoryLocation location;
  void* win32_metadata = nullptr;
  uint8_t compression_type = 0;
  uint8_t gpu_direct_rdma_capable = 0;
  uint16_t usage = 0;
  uint8_t reserved[4] = {};
};
static_assert(sizeof(AllocationProperties) == 32);
enum class AccessFlags : int { kNone = 0, kRead = 1, kReadWrite = 3 };
struct AccessDescription {
  MemoryLocation location;
  AccessFlags flags = AccessFlags::kReadWrite;
};
static_assert(sizeof(AccessDescription) == 12);
enum class Granularity : int { kMinimum = 0 };

enum class PoolAttribute : int {
  kReleaseThreshold = 4,  ///< uint64: bytes the pool may keep idle
  kReservedCurrent = 5,
  kReservedHigh = 6,
  kUsedCurrent = 7,
  kUsedHigh = 8,
};

struct Uuid {
  unsigned char bytes[16] = {};
};

struct LaunchConfig {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  StreamHandle stream = nullptr;
  struct LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};
static_assert(sizeof(LaunchConfig) == 56);

/// An option of module_load_data_ex; none is given.
enum class JitOption : int;

struct GraphUpdateResult {
  int result = 0;
  GraphNodeHandle error_node = nullptr;
  GraphNodeHandle error_from_node = nullptr;
};
static_assert(sizeof(GraphUpdateResult) == 24);

}  // namespace cuop::backend::cuda
