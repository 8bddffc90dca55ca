// The memory that a call works in.
#pragma once

#include "cuop/core/noncopyable.h"
#include "cuop/core/stream.h"
#include "cuop/memory/current.h"

namespace cuop::memory {

/// From the current resource of the stream's device, or from another one, for the time of its life:
/// work that was started on the stream meanwhile may use it, since it is free behind that, in the
/// stream's order.
class Workspace : NonCopyable {
 public:
  Workspace(int64_t bytes, Stream stream)
      : Workspace(bytes, stream, current_resource(stream.device)) {}
  Workspace(int64_t bytes, Stream stream, MemoryResource& resource)
      : resource_(resource),
        stream_(stream),
        bytes_(bytes),
        data_(resource_.allocate(bytes, stream)) {}
  ~Workspace() { resource_.deallocate(data_, bytes_, stream_); }

  void* data() const { return data_; }

 private:
  MemoryResource& resource_;
  Stream stream_;
  int64_t bytes_;
  void* data_;
};

}  // namespace cuop::memory
