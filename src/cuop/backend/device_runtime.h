// What a device can do without knowing any operator: copy, fill, order work, wait, tell its memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cuop/backend/event.h"
#include "cuop/backend/graph.h"
#include "cuop/backend/kernel.h"
#include "cuop/core/stream.h"

namespace cuop::backend {

struct DeviceProperties;

struct MemoryInfo {
  int64_t free = 0;   ///< bytes
  int64_t total = 0;  ///< bytes
};

class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual Device device() const = 0;

  /// Copies within the device, or between it and the host or another device, ordered on `stream`.
  /// Host memory may be reused or read when the call returns.
  virtual void copy(void* dst, const void* src, int64_t bytes, Stream stream) = 0;
  /// Copies between the device and page-locked host memory as work of `stream`: the bytes are there
  /// when the stream has come so far, and the caller does not wait.
  virtual void copy_locked(void* dst, const void* src, int64_t bytes, Stream stream) = 0;
  /// Whether the device reads and writes this memory of the host, all of it, by itself.
  virtual bool is_locked(const void* on_host, int64_t bytes) = 0;
  /// Whether kernels of this device read memory of the other one, which is opened to them first.
  virtual bool reads(Device other) { return other == device(); }
  virtual void fill_bytes(void* dst, int value, int64_t bytes, Stream stream) = 0;
  /// Writes `count` copies of an element that lies in host memory.
  virtual void fill(void* dst, const void* element, int64_t element_bytes, int64_t count,
                    Stream stream) = 0;

  /// A stream that runs beside the others; a lower priority number is served first.
  virtual Stream create_stream(int priority = 0) = 0;
  /// Gives the stream back; work that it still holds goes on.
  virtual void destroy_stream(Stream stream) noexcept = 0;
  virtual std::unique_ptr<Event> create_event(bool is_timed) = 0;
  /// An empty graph; NotImplementedError where work is done at once.
  virtual std::unique_ptr<Graph> create_graph() = 0;
  /// Work that `later` gets from now on waits for what `earlier` holds now; the caller does not.
  /// Where they are of two devices and that of `earlier` fails, so does waiting for `later`.
  virtual void order(Stream later, Stream earlier) = 0;
  /// True when the stream has no work left; never waits.
  virtual bool is_idle(Stream stream) = 0;
  virtual void synchronize(Stream stream) = 0;
  /// Waits for all streams.
  virtual void synchronize() = 0;
  /// Throws the error by which the device's use has ended, where it has; never waits.
  virtual void check_works() {}
  /// Nothing here waits for what was started on other devices any more: their use has ended.
  virtual void forget_order() {}
  /// Whether what the stream is given now is recorded for a graph, and not done.
  virtual bool is_recording(Stream /*stream*/) { return false; }

  virtual MemoryInfo memory_info() const = 0;
  virtual std::string description() const = 0;
  /// What it is made of (backend/device_properties.h); NotImplementedError of the CPU, where
  /// nothing is chosen by it.
  virtual const DeviceProperties& properties() const = 0;
  /// What bounds the kernels that are made for it; the usual GPU's where none are.
  virtual GpuLimits kernel_limits() const { return {}; }
  /// Of the cache that a search for the fastest kernel must go beyond; 0 where none is searched
  /// for.
  virtual int64_t l2_bytes() const { return 0; }
  /// Gives up what was prepared for calls of libraries to come; returns its bytes.
  virtual int64_t release_prepared() { return 0; }
};

/// The CPU's, which is always there.
Runtime& cpu_runtime();

}  // namespace cuop::backend
