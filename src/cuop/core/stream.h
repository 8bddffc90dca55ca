// An ordered queue of device work. On the CPU work runs at once and the handle is null; on a GPU
// the null handle is the default stream, which PyTorch and CuPy use as well.
#pragma once

#include "cuop/core/device.h"
#include "cuop/core/noncopyable.h"

namespace cuop {

struct Stream {
  Device device;
  void* handle = nullptr;
  bool operator==(const Stream&) const = default;
};

/// The stream on which this thread's work on `device` runs: the one that was set, else the default.
Stream current_stream(Device device);
/// Makes it the current stream of its device for this thread.
void set_current_stream(Stream stream);

/// Makes a stream current for the time of its life.
class StreamScope : NonCopyable {
 public:
  explicit StreamScope(Stream stream);
  ~StreamScope();

 private:
  Stream before_;
};

}  // namespace cuop
