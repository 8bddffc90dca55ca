// Which other devices the work of a device's streams waits for. Should one of those fail, what
// waited for it may go on all the same, with whatever then lies in memory: whoever waits for such a
// stream has to be told.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "cuop/backend/cuda/driver_types.h"
#include "cuop/core/device.h"
#include "cuop/core/fork_mutex.h"

namespace cuop::backend::cuda {

/// Of the streams of one device. Any thread may call.
class AwaitedDevices {
 public:
  /// A bit for each GPU.
  using Set = uint64_t;
  static Set only(Device device) { return Set{1} << device.index; }

  struct Awaited {
    Set devices = 0;
    uint64_t serial = 0;  ///< of the latest wait
  };

  /// From now on the stream waits for work of these.
  void add(StreamHandle stream, Set devices);
  Awaited of(StreamHandle stream) const;
  /// The stream has come to its end, and what it waited for then works.
  void settle(StreamHandle stream, const Awaited& then);
  void clear();

 private:
  mutable ForkMutex mutex_;
  std::map<StreamHandle, Awaited> awaited_;
  uint64_t serial_ = 0;
};

AwaitedDevices& awaited_devices(Device device);

}  // namespace cuop::backend::cuda
