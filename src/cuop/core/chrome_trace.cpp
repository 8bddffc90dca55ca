#include "cuop/core/chrome_trace.h"

#include <map>
#include <sstream>

#include "cuop/core/json.h"
#include "cuop/core/text.h"

namespace cuop::trace {

namespace {

/// Tracks of streams are numbered from here, behind those of the threads.
constexpr int kFirstStreamTrack = 1000;

double microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-3; }

class Writer {
 public:
  Writer() : json_(out_) {
    out_ << std::fixed;
    out_.precision(3);
    json_.open('{').key("traceEvents").open('[');
  }

  void span(const Event& event, int track) {
    begin("X", event.name, event.rank);
    json_.members("cat", event.category, "tid", track, "ts", microseconds(event.start_ns), "dur",
                  microseconds(event.duration_ns));
    json_.key("args").open('{').members("bytes", event.bytes, "flops", event.flops);
    if (event.gpu_ns > 0) json_.members("gpu_us", microseconds(event.gpu_ns));
    if (!event.stream.empty()) json_.members("stream", event.stream);
    if (event.detail) event.detail->write(json_);
    json_.close().close();
  }

  void track_name(int rank, int track, const std::string& name) {
    begin("M", "thread_name", rank);
    json_.members("tid", track).key("args").object("name", name).close();
  }

  void process_name(int rank) {
    begin("M", "process_name", rank);
    json_.members("tid", 0).key("args").object("name", cat("rank ", rank)).close();
  }

  void label(int rank, const std::string& text) {
    begin("M", "process_labels", rank);
    json_.members("tid", 0).key("args").object("labels", text).close();
  }

  void counter(int rank, const char* name, int64_t time_ns, double value) {
    begin("C", name, rank);
    json_.members("tid", 0, "ts", microseconds(time_ns)).key("args").object(name, value).close();
  }

  std::string finish() {
    json_.new_line().close().close();
    out_ << '\n';
    return out_.str();
  }

 private:
  void begin(const char* kind, const std::string& name, int rank) {
    json_.new_line().open('{').members("ph", kind, "name", name, "pid", rank);
  }

  std::ostringstream out_;
  JsonWriter json_;
};

/// The tracks of each rank, named as they are met.
class Tracks {
 public:
  explicit Tracks(Writer& writer) : writer_(writer) {}

  int of(const Event& event) {
    auto [rank, is_new_rank] = ranks_.try_emplace(event.rank);
    if (is_new_rank) writer_.process_name(event.rank);
    auto& streams = rank->second;
    if (event.stream.empty()) {
      const std::string name = cat("thread ", event.thread);
      const auto [track, is_new] = streams.try_emplace(name, event.thread);
      if (is_new) writer_.track_name(event.rank, event.thread, name);
      return track->second;
    }
    const int next = kFirstStreamTrack + static_cast<int>(streams.size());
    const auto [track, is_new] = streams.try_emplace(event.stream, next);
    if (is_new) writer_.track_name(event.rank, next, event.stream);
    return track->second;
  }

 private:
  Writer& writer_;
  std::map<int, std::map<std::string, int>> ranks_;
};

/// Whether the event's bytes and operations count: those of work on a GPU in its stream's time, of
/// a distributed call those of the spans within it.
bool counts(const Event& event) {
  return event.is_outermost && event.duration_ns > 0 && event.category != "dist" &&
         (event.category == "gpu" || event.gpu_ns == 0);
}

/// The sum of the rates of all events that are going on, at each moment where it changes.
void write_counter(Writer& writer, const std::vector<Event>& events, const char* name,
                   double (*amount)(const Event& event)) {
  std::map<int, std::map<int64_t, double>> changes;
  for (const Event& event : events) {
    const double rate = counts(event) ? amount(event) / static_cast<double>(event.duration_ns) : 0;
    if (!(rate > 0.0)) continue;
    changes[event.rank][event.start_ns] += rate;
    changes[event.rank][event.start_ns + event.duration_ns] -= rate;
  }
  for (const auto& [rank, steps] : changes) {
    double now = 0.0;
    for (const auto& [time, change] : steps) {
      now += change;
      writer.counter(rank, name, time, now > 1e-9 ? now : 0.0);  // rounding may leave a rest
    }
  }
}

}  // namespace

std::string to_chrome_json(const std::vector<Event>& events,
                           const std::map<int, std::string>& labels) {
  Writer writer;
  Tracks tracks(writer);
  for (const Event& event : events) writer.span(event, tracks.of(event));
  for (const auto& [rank, text] : labels) writer.label(rank, text);
  // Bytes in a nanosecond are GB/s, operations GFLOP/s.
  write_counter(writer, events, "GB/s",
                [](const Event& event) { return static_cast<double>(event.bytes); });
  write_counter(writer, events, "GFLOP/s", [](const Event& event) { return event.flops; });
  return writer.finish();
}

}  // namespace cuop::trace
