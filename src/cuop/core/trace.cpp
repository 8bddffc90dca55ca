#include "cuop/core/trace.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/nvtx.h"
#include "cuop/core/text.h"

namespace cuop::trace {

namespace {

using detail::sinks;

std::atomic<Listener> listener = nullptr;
std::atomic<MarkMaker> mark_maker = nullptr;
std::atomic<int> threads_seen = 0;
std::atomic<int> rank_of_process = 0;
thread_local int rank_of_thread = -1;
thread_local int number_of_thread = -1;
thread_local Span* innermost = nullptr;
thread_local StreamTimer* innermost_timer = nullptr;
thread_local int interruptions = 0;  // that are open

struct Log {
  ForkMutex mutex;
  std::vector<Finished> spans;
};

Log& log() {
  static Log* instance = new Log;  // outlives static destructors that may still record
  return *instance;
}

void set_sink(unsigned sink, bool on) {
  if (on) {
    sinks |= sink;
  } else {
    sinks &= ~sink;
  }
}

int thread_number() {
  if (number_of_thread < 0) number_of_thread = threads_seen++;
  return number_of_thread;
}

/// Streams by number, in the order in which they are met.
class StreamNames {
 public:
  std::string name(Stream stream) {
    if (stream.handle == nullptr) return cat(stream.device, " default stream");
    auto& numbers = numbers_[stream.device.index];
    const auto number = numbers.emplace(stream.handle, numbers.size() + 1).first->second;
    return cat(stream.device, " stream ", number);
  }

 private:
  std::map<int, std::map<void*, size_t>> numbers_;
};

/// The part that further work of the stream belongs to; null when that is a new one.
StreamWork* open_part(std::vector<StreamWork>& work, Stream stream) {
  const auto known = std::find_if(work.begin(), work.end(), [stream](const StreamWork& part) {
    return part.stream == stream && !part.is_over;
  });
  return known == work.end() ? nullptr : &*known;
}

/// The event with what is known now of its streams, and one event for each of them.
void add_events(const Finished& span, StreamNames& names, std::vector<Event>& events) {
  const size_t place = events.size();
  events.push_back(span.event);
  for (const StreamWork& work : span.work) {
    Event event = span.event;
    event.category = "gpu";
    event.detail = nullptr;
    if (span.event.category == "dist") event.is_outermost = false;  // its parts count
    event.stream = names.name(work.stream);
    event.start_ns = work.begin->time_ns();
    event.duration_ns = work.end->since_ns(*work.begin);
    events[place].gpu_ns += event.duration_ns;
    events.push_back(std::move(event));
  }
}

}  // namespace

bool Finished::is_done() const {
  return std::all_of(work.begin(), work.end(),
                     [](const StreamWork& part) { return part.end->is_reached(); });
}

int64_t stream_ns(const std::vector<StreamWork>& work) {
  int64_t sum = 0;
  for (const StreamWork& part : work) sum += part.end->since_ns(*part.begin);
  return sum;
}

MarkMaker set_mark_maker(MarkMaker maker) { return mark_maker.exchange(maker); }
void set_recording(bool on) { set_sink(detail::kRecording, on); }
bool is_recording() { return (sinks & detail::kRecording) != 0; }
void set_listener(Listener wanted) {
  listener = wanted;
  set_sink(detail::kListener, wanted != nullptr);
}
void set_process_rank(int rank) { rank_of_process = rank; }
void set_thread_rank(int rank) { rank_of_thread = rank; }
int thread_rank() { return rank_of_thread >= 0 ? rank_of_thread : rank_of_process.load(); }

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void record(Event event) {
  const std::lock_guard lock(log().mutex);
  log().spans.push_back({std::move(event), {}});
}

std::vector<Event> events() {
  std::vector<Finished> spans;
  {
    const std::lock_guard lock(log().mutex);
    spans = log().spans;
  }
  // All are waited for first: a mark is read most exactly by a clock that is set after it.
  for (const Finished& span : spans) {
    for (const StreamWork& work : span.work) work.end->wait();
  }
  std::vector<Event> all;
  StreamNames names;
  for (const Finished& span : spans) add_events(span, names, all);
  std::stable_sort(all.begin(), all.end(),
                   [](const Event& a, const Event& b) { return a.start_ns < b.start_ns; });
  return all;
}

void clear() {
  const std::lock_guard lock(log().mutex);
  log().spans.clear();
}

void Span::open(std::string_view name, std::string_view category) {
  if ((sinks & detail::kUndecided) != 0) {
    set_sink(detail::kRanges, nvtx::is_attached());
    set_sink(detail::kUndecided, false);
    if (sinks == 0) return;
  }
  state_ = std::make_unique<State>();
  Event& event = state_->event;
  event.name = name;
  event.category = category;
  event.rank = thread_rank();
  event.thread = thread_number();
  for (const Span* outer = innermost; outer != nullptr; outer = outer->state_->outer) {
    if (outer->state_->event.category == category) event.is_outermost = false;
  }
  state_->outer = std::exchange(innermost, this);
  if ((sinks & detail::kRanges) != 0) {
    nvtx::push(event.name.c_str());
    state_->has_range = true;
  }
  event.start_ns = now_ns();
}

void Span::close() noexcept {
  State& state = *state_;
  state.event.duration_ns = now_ns() - state.event.start_ns;
  if (state.has_range) nvtx::pop();
  if (innermost == this) innermost = state.outer;
  std::erase_if(state.work, [](const StreamWork& part) { return part.end == nullptr; });
  if (state.outer != nullptr) {
    for (const StreamWork& part : state.work) {
      auto& outer = state.outer->state_->work;
      if (StreamWork* known = open_part(outer, part.stream)) {
        known->end = part.end;
        known->is_over = part.is_over;
      } else {
        outer.push_back(part);
      }
    }
  }
  Finished finished{std::move(state.event), std::move(state.work)};
  const Listener listening = listener;
  if (is_recording()) {
    const std::lock_guard lock(log().mutex);
    log().spans.push_back(listening != nullptr ? finished : std::move(finished));
  }
  if (listening != nullptr) listening(std::move(finished));
}

void Work::open(std::string_view name, Stream stream) {
  if (innermost == nullptr) own_.emplace(name, "op");
  if (innermost == nullptr) return;  // nobody listens any more
  const MarkMaker make = mark_maker;
  if (make == nullptr || (sinks & (detail::kRecording | detail::kListener)) == 0) return;
  stream_ = stream;
  begin_ = make(stream);
}

void Work::finish() {
  auto end = mark_maker.load()(stream_);
  auto& all = innermost->state_->work;
  if (StreamWork* known = open_part(all, stream_)) {
    known->end = std::move(end);
  } else {
    all.push_back({stream_, std::move(begin_), std::move(end)});
  }
  begin_.reset();
  own_.reset();
}

StreamTimer::StreamTimer(Stream stream)
    : stream_(stream), outer_(std::exchange(innermost_timer, this)) {
  begin_part();
}

StreamTimer::~StreamTimer() {
  if (innermost_timer == this) innermost_timer = outer_;
}

std::vector<StreamWork> StreamTimer::stop() {
  end_part();
  if (innermost_timer == this) innermost_timer = outer_;
  return std::move(work_);
}

void StreamTimer::begin_part() {
  const MarkMaker make = mark_maker;
  auto begin = make == nullptr ? nullptr : make(stream_);
  if (begin != nullptr) work_.push_back({stream_, std::move(begin), nullptr});
}

void StreamTimer::end_part() {
  if (work_.empty() || work_.back().is_over) return;
  work_.back().is_over = true;
  work_.back().end = mark_maker.load()(stream_);
  if (work_.back().end == nullptr) work_.clear();  // a graph records: the time is unknown
}

Interruption::Interruption() {
  if (interruptions++ > 0) return;
  for (const Span* span = innermost; span != nullptr; span = span->state_->outer) {
    for (StreamWork& part : span->state_->work) part.is_over = true;
  }
  for (StreamTimer* timer = innermost_timer; timer != nullptr; timer = timer->outer_) {
    timer->end_part();
  }
}

Interruption::~Interruption() {
  if (--interruptions > 0) return;
  for (StreamTimer* timer = innermost_timer; timer != nullptr; timer = timer->outer_) {
    timer->begin_part();
  }
}

}  // namespace cuop::trace
