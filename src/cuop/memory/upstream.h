// What a pool stands on: the system's memory of one device, and the order of work on its streams.
// Both are injected, so that the same pool serves the host, a GPU and scripted tests.
#pragma once

#include <cstdint>
#include <string>

#include "cuop/core/stream.h"

namespace cuop::memory {

struct DeviceMemory {
  int64_t free = 0;   ///< bytes that the system could still give to anybody
  int64_t total = 0;  ///< bytes of the device
};

/// Memory of a device as its system gives it. Calls may be slow; a pool makes none under a lock.
/// Every function may be called from any thread.
class Upstream {
 public:
  virtual ~Upstream() = default;
  virtual Device device() const = 0;
  /// "host, mapped", "cuda driver, plain", ...
  virtual std::string name() const = 0;
  /// Whether address ranges are taken empty and given memory granule by granule with map().
  virtual bool can_map() const = 0;
  /// The unit of mapping, or of plain allocations; a power of two.
  virtual int64_t granule() const = 0;
  /// A range of `bytes` (a multiple of granule()): addresses without memory, aligned to granule(),
  /// when can_map(); else memory, aligned to a page or more. Null when the system refuses.
  virtual void* acquire(int64_t bytes) = 0;
  /// Gives a whole range back; nothing of it is mapped any more.
  virtual void release(void* range, int64_t bytes) noexcept = 0;
  /// What large blocks are mapped in: a multiple of granule() where mapping in larger pieces is
  /// cheaper.
  virtual int64_t large_granule() const { return granule(); }
  /// Puts memory behind part of an acquired range in pieces of `piece` bytes, which is one of the
  /// two granules; all or nothing, false when there is none left.
  virtual bool map(void* address, int64_t bytes, int64_t piece) = 0;
  /// Takes the memory of whole pieces away, which are as large as when they were mapped. No work
  /// that uses them is in flight.
  virtual void unmap(void* address, int64_t bytes, int64_t piece) noexcept = 0;
  virtual DeviceMemory memory() const = 0;
};

/// An upstream that gives memory in whole pieces and cannot map.
class PlainUpstream : public Upstream {
 public:
  bool can_map() const final { return false; }
  int64_t granule() const override { return int64_t{2} << 20; }
  bool map(void*, int64_t, int64_t) final { return false; }
  void unmap(void*, int64_t, int64_t) noexcept final {}
};

/// Points in the order of a stream's work.
class StreamOrder {
 public:
  using Event = void*;
  virtual ~StreamOrder() = default;
  /// A point behind all work that the stream has been given. Null: that work is already done.
  virtual Event record(Stream stream) noexcept = 0;
  virtual bool is_done(Event event) noexcept = 0;
  /// Blocks this thread until the point is passed.
  virtual void wait(Event event) noexcept = 0;
  /// The same; Interrupted when the user interrupts.
  virtual void wait_interruptibly(Event event) { wait(event); }
  /// Lets later work of `stream` start only behind the point; does not block this thread.
  virtual void make_wait(Stream stream, Event event) noexcept = 0;
  /// The event may be used again; called once for every event that is not null.
  virtual void recycle(Event event) noexcept = 0;
};

/// Devices whose work is done when the call that asked for it returns.
class ImmediateOrder final : public StreamOrder {
 public:
  Event record(Stream) noexcept override { return nullptr; }
  bool is_done(Event) noexcept override { return true; }
  void wait(Event) noexcept override {}
  void make_wait(Stream, Event) noexcept override {}
  void recycle(Event) noexcept override {}
};

}  // namespace cuop::memory
