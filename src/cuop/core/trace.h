// Spans of work with their time, rank and figures, while somebody listens: a recording (the Chrome
// trace, the report's time line), the profiler (core/profile.h) or a profiler from outside that
// takes ranges (core/nvtx.h). A span costs one flag test when nobody does.
//
// Work on a GPU is done after the call that starts it. Marks are put into the stream before its
// first and behind its last start of a span, and read when the spans are: nothing waits meanwhile.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuop/core/noncopyable.h"
#include "cuop/core/stream.h"

namespace cuop {
class JsonWriter;
}

namespace cuop::trace {

/// What a layer above knows of a span beside the figures that all have.
class Detail {
 public:
  virtual ~Detail() = default;
  /// Writes members of the span's "args" in a Chrome trace.
  virtual void write(JsonWriter& json) const = 0;
};

struct Event {
  std::string name;
  std::string category;  ///< "op", "comm", "plan", ...; "gpu" for the time of a stream
  int rank = 0;
  int thread = 0;           ///< which of the process's threads, counted from their first span
  std::string stream = {};  ///< whose time this is, "cuda:0 stream 1"; "" for the host's
  int64_t start_ns = 0;     ///< on a clock shared by all threads
  int64_t duration_ns = 0;
  int64_t gpu_ns = 0;  ///< of a host's span: what streams needed for its work
  int64_t bytes = 0;   ///< moved between ranks, or read and written by an op
  double flops = 0.0;
  bool is_outermost = true;                   ///< not inside another span of its category
  std::shared_ptr<const Detail> detail = {};  ///< null where nobody has said more
};

/// A place in a stream's work.
class Mark {
 public:
  virtual ~Mark() = default;
  /// Whether the stream has come to it; never waits.
  virtual bool is_reached() const = 0;
  virtual void wait() const = 0;
  /// When the stream came to it, on the clock of now_ns. Waits.
  virtual int64_t time_ns() const = 0;
  /// Nanoseconds from an earlier mark of the same stream to this one. Waits.
  virtual int64_t since_ns(const Mark& earlier) const = 0;
};
/// Puts a mark behind all work that the stream holds now; null where none can be (a graph is being
/// captured).
using MarkMaker = std::shared_ptr<const Mark> (*)(Stream stream);
/// Streams are marked by what stands above this layer. Returns the maker before.
MarkMaker set_mark_maker(MarkMaker maker);

/// From a start of a span's work in a stream to the end of the last before an Interruption.
struct StreamWork {
  Stream stream;
  std::shared_ptr<const Mark> begin, end;
  bool is_over = false;  ///< interrupted: what comes later is a part of its own
};
/// Time of all parts together. Waits.
int64_t stream_ns(const std::vector<StreamWork>& work);

/// A span that was closed. Its stream work may still be going on.
struct Finished {
  Event event;
  std::vector<StreamWork> work;
  bool is_done() const;
  int64_t gpu_ns() const { return stream_ns(work); }
};

void set_recording(bool on);
bool is_recording();
/// Gets every span when it is closed, on its thread; null for nobody. Must not throw.
using Listener = void (*)(Finished&& finished);
void set_listener(Listener listener);

/// The rank under which spans are filed: of threads that have none of their own, and of this one.
void set_process_rank(int rank);
void set_thread_rank(int rank);
int thread_rank();
int64_t now_ns();
void record(Event event);
/// All events so far in order of their start, those of streams among them; waits for these. `clear`
/// empties the list.
std::vector<Event> events();
void clear();

namespace detail {
enum Sink : unsigned { kRecording = 1, kListener = 2, kRanges = 4, kUndecided = 8 };
/// Undecided until the first span asks whether there are ranges to tell.
inline std::atomic<unsigned> sinks = kUndecided;
}  // namespace detail

/// Open from construction to destruction, on one thread; spans of a thread nest.
class Span : NonCopyable {
 public:
  Span(std::string_view name, std::string_view category) {
    if (detail::sinks.load(std::memory_order_relaxed) != 0) [[unlikely]]
      open(name, category);
  }
  ~Span() {
    if (state_) [[unlikely]]
      close();
  }
  /// False when nobody listens.
  bool is_open() const { return state_ != nullptr; }
  void add_bytes(int64_t bytes) {
    if (state_) state_->event.bytes += bytes;
  }
  void add_flops(double flops) {
    if (state_) state_->event.flops += flops;
  }
  /// What this span turned out to be: work that was only recorded is no "op".
  void set_category(std::string_view category) {
    if (state_) state_->event.category = category;
  }
  void set_name(std::string_view name) {
    if (state_) state_->event.name = name;
  }
  void set_detail(std::shared_ptr<const Detail> detail) {
    if (state_) state_->event.detail = std::move(detail);
  }

 private:
  friend class Work;
  friend class Interruption;
  struct State {
    Event event;
    std::vector<StreamWork> work;
    Span* outer = nullptr;
    bool has_range = false;
  };
  void open(std::string_view name, std::string_view category);
  void close() noexcept;

  std::unique_ptr<State> state_;
};

/// Stands around a start of work in a GPU's stream and marks it for the innermost span of this
/// thread; work outside of all spans gets one of its own.
class Work : NonCopyable {
 public:
  Work(std::string_view name, Stream stream) {
    if (detail::sinks.load(std::memory_order_relaxed) != 0) [[unlikely]]
      open(name, stream);
  }
  /// The work has been started.
  void started() {
    if (begin_) [[unlikely]]
      finish();
  }

 private:
  void open(std::string_view name, Stream stream);
  void finish();

  Stream stream_;
  std::shared_ptr<const Mark> begin_;
  std::optional<Span> own_;
};

/// The time of a stream from construction to `stop`, on one thread, whoever listens. Timers of a
/// thread nest.
class StreamTimer : NonCopyable {
 public:
  explicit StreamTimer(Stream stream);
  ~StreamTimer();
  /// Returns the parts between interruptions; none for the CPU and where no mark can be put.
  std::vector<StreamWork> stop();

 private:
  friend class Interruption;
  void begin_part();
  void end_part();

  Stream stream_;
  std::vector<StreamWork> work_;
  StreamTimer* outer_;
};

/// Stands around what the host does in the middle of this thread's spans and timers that is no work
/// of theirs: compiling a kernel, starting a library, making a plan. What their streams wait
/// meanwhile counts with none of them.
class Interruption : NonCopyable {
 public:
  Interruption();
  ~Interruption();
};

}  // namespace cuop::trace
