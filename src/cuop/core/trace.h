// Spans of work with their time, rank and figures, collected while recording is on. They feed the
// profiler's table, the report's time line and the Chrome trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cuop::trace {

struct Event {
  std::string name;
  std::string category;  ///< "op", "comm", "plan", ...
  int rank = 0;
  int64_t start_ns = 0;  ///< since the process's first call, on a clock shared by all threads
  int64_t duration_ns = 0;
  int64_t bytes = 0;  ///< moved between ranks, or read and written by an op
  double flops = 0.0;
};

void set_recording(bool on);
bool is_recording();
/// The rank under which this thread's spans are filed.
void set_thread_rank(int rank);
int thread_rank();
int64_t now_ns();
void record(Event event);
/// All events so far in order of their start; `clear` empties the list.
std::vector<Event> events();
void clear();
/// The events in Chrome's trace-event format (one process a rank).
std::string to_chrome_json(const std::vector<Event>& events);

/// Records from construction to destruction; costs one flag test when recording is off.
class Span {
 public:
  Span(std::string_view name, std::string_view category);
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  void add_bytes(int64_t bytes) {
    if (event_) event_->bytes += bytes;
  }
  void add_flops(double flops) {
    if (event_) event_->flops += flops;
  }

 private:
  std::optional<Event> event_;  // empty when recording is off
};

}  // namespace cuop::trace
