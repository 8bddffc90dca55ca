// Streams of the simulated devices. Each has a thread that does its work in order; what happens on
// two streams has no order but that of events, so that a program that forgot one goes wrong.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "cuop/backend/cuda/driver_types.h"

namespace cuop::simulator {

using backend::cuda::CaptureMode;
using backend::cuda::Result;

class Stream;
struct Capture;

/// A point of a stream's work: done when so many operations of it are.
struct Mark {
  std::shared_ptr<Stream> stream;
  uint64_t ticket = 0;
};
bool is_done(const Mark& mark);
void wait_for(const Mark& mark);

/// The work answers what became of it; anything but success is the end of its device.
using Work = std::function<Result()>;

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  /// `is_blocking`: it and the legacy stream wait for each other.
  static std::shared_ptr<Stream> make(int device, bool is_blocking, int priority);
  static std::shared_ptr<Stream> make_legacy(int device);

  int device() const { return device_; }
  bool is_blocking() const { return is_blocking_; }
  int priority() const { return priority_; }

  /// Adds work that begins when all before it and all that `after` names is done.
  Mark submit(Work work, std::vector<Mark> after = {});
  /// The end of what was submitted so far.
  Mark last();
  /// Lets the thread end behind the work that there is.
  void close();

  std::shared_ptr<Capture> capture;  ///< the recording that it takes part in

 private:
  struct Operation {
    Work work;
    std::vector<Mark> after;
  };

  Stream(int device, bool is_blocking, bool is_legacy, int priority)
      : device_(device), priority_(priority), is_blocking_(is_blocking), is_legacy_(is_legacy) {}
  static std::shared_ptr<Stream> start(std::shared_ptr<Stream> stream);
  void run();

  friend bool is_done(const Mark& mark);
  friend void wait_for(const Mark& mark);
  friend std::vector<Mark> last_marks(int device, bool only_blocking);

  const int device_, priority_;
  const bool is_blocking_, is_legacy_;
  std::condition_variable arrived_;
  std::deque<Operation> queue_;
  uint64_t submitted_ = 0, completed_ = 0;
  bool is_closed_ = false;
};

/// The ends of the work of all streams of a device.
std::vector<Mark> last_marks(int device, bool only_blocking);

/// The stream that handles 0 and 1 stand for.
Stream& legacy_stream(int device);

/// A point in time, written when an event is reached.
struct Event {
  explicit Event(int on, unsigned with) : device(on), flags(with) {}
  const int device;
  const unsigned flags;
  bool is_recorded = false;
  Mark mark;
  std::shared_ptr<std::atomic<int64_t>> nanoseconds;
  /// Where it stands in a recording instead.
  std::shared_ptr<Capture> capture;
  std::vector<size_t> nodes;
};

int64_t now_ns();

}  // namespace cuop::simulator
