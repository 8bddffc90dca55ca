// A point in a stream's work that others can wait for or measure from.
#pragma once

#include "cuop/core/stream.h"

namespace cuop::backend {

class Event {
 public:
  virtual ~Event() = default;
  /// Marks the end of the work that the stream holds now; a later mark replaces it.
  virtual void record(Stream stream) = 0;
  /// Later work of the stream waits for the mark; the caller does not.
  virtual void wait(Stream stream) const = 0;
  virtual void synchronize() const = 0;
  virtual bool is_done() const = 0;
  /// Milliseconds between two recorded marks; ExecutionError when either was made without timing,
  /// DeviceError when they mark two devices.
  virtual double elapsed_ms(const Event& since) const = 0;
};

}  // namespace cuop::backend
