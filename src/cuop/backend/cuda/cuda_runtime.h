// A GPU as a device: its primary context, streams, events, copies, and what it is made of.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "cuop/backend/cuda/awaited_devices.h"
#include "cuop/backend/cuda/capture.h"
#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/driver.h"
#include "cuop/backend/cuda/mapped_ranges.h"
#include "cuop/backend/cuda/peer_access.h"
#include "cuop/backend/cuda/wait_guards.h"
#include "cuop/backend/device_properties.h"
#include "cuop/backend/device_runtime.h"
#include "cuop/backend/kernel.h"
#include "cuop/core/fork_mutex.h"

namespace cuop::backend::cuda {

struct CudaProperties : DeviceProperties {
  bool has_virtual_memory = false;    ///< mem_create, mem_map and their like
  bool has_memory_pools = false;      ///< mem_alloc_async
  bool has_file_descriptors = false;  ///< other processes can map what is mapped here
  bool has_host_register = false;     ///< mem_host_register
};

class CudaRuntime final : public Runtime {
 public:
  explicit CudaRuntime(Device device);

  Device device() const override { return device_; }
  const CudaProperties& properties() const override { return properties_; }
  DeviceId id() const { return id_; }

  void copy(void* dst, const void* src, int64_t bytes, Stream stream) override;
  void copy_locked(void* dst, const void* src, int64_t bytes, Stream stream) override;
  bool is_locked(const void* on_host, int64_t bytes) override;
  bool reads(Device other) override;
  void fill_bytes(void* dst, int value, int64_t bytes, Stream stream) override;
  void fill(void* dst, const void* element, int64_t element_bytes, int64_t count,
            Stream stream) override;

  Stream create_stream(int priority) override;
  void destroy_stream(Stream stream) noexcept override;
  std::unique_ptr<Event> create_event(bool is_timed) override;
  std::unique_ptr<Graph> create_graph() override;
  void order(Stream later, Stream earlier) override;
  bool is_idle(Stream stream) override;
  void synchronize(Stream stream) override;
  void synchronize() override;
  void check_works() override;
  void forget_order() override;

  MemoryInfo memory_info() const override;
  std::string description() const override;
  bool is_recording(Stream stream) override { return is_capturing(stream); }
  GpuLimits kernel_limits() const override;
  int64_t l2_bytes() const override { return properties_.l2_bytes; }

  /// Lets kernels of this device read and write memory of `peer`, what is there and what comes: all
  /// that cuOP allocates, plain memory and the driver's default pool of other libraries. False when
  /// the hardware cannot. Asking twice is harmless.
  bool enable_peer_access(Device peer);
  /// Which devices reach this one's mapped memory.
  PeerAccess& access() { return access_; }
  /// What is mapped of this device's memory.
  MappedRanges& mapped() { return mapped_; }

 private:
  /// A copy in which the host's memory takes part. `is_read_at_once`: the driver has read it when
  /// its call returns.
  void copy_host(void* dst, const void* src, int64_t bytes, Stream stream, bool is_read_at_once);
  /// Waits for all that the stream holds; ExecutionError when a device fails that it waits for.
  Result wait_for(StreamHandle queue);
  /// Throws when one of the devices has failed, for which work of this one waits: its results mean
  /// nothing then.
  void check_awaited(const AwaitedDevices::Awaited& awaited) const;
  /// Before the first copy between this device and `peer`: with access it goes over their link,
  /// without it the driver takes the host's memory between.
  void open_way_to(Device peer);

  struct IdleStream {
    StreamHandle handle = nullptr;
    int priority = 0;
  };

  Device device_;
  DeviceId id_ = 0;
  PeerAccess access_;
  MappedRanges mapped_;
  AwaitedDevices& awaited_;
  WaitGuards& guards_;
  std::atomic<uint64_t> was_tried_ = 0;  ///< a bit for each device whose way was looked for
  std::atomic<uint64_t> is_open_ = 0;    ///< a bit for each device whose memory is reached
  CudaProperties properties_;
  EventHandle probe_ = nullptr;  ///< never recorded: it is asked about the device alone
  ForkMutex mutex_;
  std::vector<IdleStream> idle_streams_;
  std::unordered_map<StreamHandle, int> priorities_;  ///< of the streams that were made here
};

/// The device's runtime, made by the first call; DeviceError that says what is missing.
CudaRuntime& cuda_runtime(Device device);

}  // namespace cuop::backend::cuda
