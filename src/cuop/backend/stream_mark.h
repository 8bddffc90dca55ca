// Marks in streams (core/trace.h) over events, which are used again.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "cuop/backend/event.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/trace.h"

namespace cuop::backend {

/// Makes the marks of one device. Outlives them.
class StreamMarks {
 public:
  explicit StreamMarks(std::function<std::unique_ptr<Event>()> create_timed_event)
      : create_(std::move(create_timed_event)) {}

  std::shared_ptr<const trace::Mark> mark(Stream stream);
  /// Events that no mark uses now.
  size_t idle_count() const;

 private:
  friend class EventMark;
  /// An event of which the host knows when it happened.
  struct Anchor {
    std::unique_ptr<Event> event;
    int64_t time_ns = 0;
  };

  std::unique_ptr<Event> take();
  void give_back(std::unique_ptr<Event> event);
  /// When `event`, which is known to have happened by `reached_ns`, happened.
  int64_t time_of(const Event& event, Stream stream, int64_t reached_ns);

  std::function<std::unique_ptr<Event>()> create_;
  mutable ForkMutex mutex_;
  std::vector<std::unique_ptr<Event>> idle_;
  Anchor anchor_;
};

/// The mark maker of this process's devices; null while the stream is captured.
std::shared_ptr<const trace::Mark> mark_stream(Stream stream);

}  // namespace cuop::backend
