#include "cuop/core/trace.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <sstream>

#include "cuop/core/text.h"

namespace cuop::trace {

namespace {

std::atomic<bool> recording = false;
thread_local int rank_of_thread = 0;

struct Log {
  std::mutex mutex;
  std::vector<Event> events;
};

Log& log() {
  static Log* instance = new Log;  // outlives static destructors that may still record
  return *instance;
}

}  // namespace

void set_recording(bool on) { recording = on; }
bool is_recording() { return recording; }
void set_thread_rank(int rank) { rank_of_thread = rank; }
int thread_rank() { return rank_of_thread; }

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void record(Event event) {
  const std::lock_guard lock(log().mutex);
  log().events.push_back(std::move(event));
}

std::vector<Event> events() {
  std::vector<Event> copy;
  {
    const std::lock_guard lock(log().mutex);
    copy = log().events;
  }
  std::stable_sort(copy.begin(), copy.end(),
                   [](const Event& a, const Event& b) { return a.start_ns < b.start_ns; });
  return copy;
}

void clear() {
  const std::lock_guard lock(log().mutex);
  log().events.clear();
}

std::string to_chrome_json(const std::vector<Event>& events) {
  std::ostringstream out;
  out.precision(3);
  out << std::fixed << "{\"traceEvents\":[";
  const char* between = "\n";
  for (const Event& event : events) {
    out << between << "{\"ph\":\"X\",\"name\":\"" << json_escaped(event.name) << "\",\"cat\":\""
        << json_escaped(event.category) << "\",\"pid\":" << event.rank
        << ",\"tid\":0,\"ts\":" << static_cast<double>(event.start_ns) * 1e-3
        << ",\"dur\":" << static_cast<double>(event.duration_ns) * 1e-3
        << ",\"args\":{\"bytes\":" << event.bytes << ",\"flops\":" << event.flops << "}}";
    between = ",\n";
  }
  out << "\n]}\n";
  return out.str();
}

Span::Span(std::string_view name, std::string_view category) {
  if (!is_recording()) return;
  event_.emplace();
  event_->name = name;
  event_->category = category;
  event_->rank = rank_of_thread;
  event_->start_ns = now_ns();
}

Span::~Span() {
  if (!event_) return;
  event_->duration_ns = now_ns() - event_->start_ns;
  record(std::move(*event_));
}

}  // namespace cuop::trace
