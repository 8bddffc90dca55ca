#include "cuop/backend/stream_mark.h"

#include <atomic>
#include <cmath>

#include "cuop/backend/runtime.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/one_per_device.h"

namespace cuop::backend {

namespace {

/// Events tell the time between two of them as a float of milliseconds: the farther apart, the
/// coarser. Anchors older than this are set anew.
constexpr int64_t kAnchorLife = 1'000'000'000;

int64_t nanoseconds(double ms) { return std::llround(ms * 1e6); }

const bool offers_marks = [] {
  trace::set_mark_maker(&mark_stream);
  return true;
}();

}  // namespace

class EventMark final : public trace::Mark, private NonCopyable {
 public:
  EventMark(StreamMarks& marks, std::unique_ptr<Event> event, Stream stream)
      : marks_(marks), event_(std::move(event)), stream_(stream) {
    event_->record(stream);
  }
  ~EventMark() override { marks_.give_back(std::move(event_)); }

  bool is_reached() const override {
    const bool is = event_->is_done();
    if (is) note_reached();
    return is;
  }
  void wait() const override {
    event_->synchronize();
    note_reached();
  }
  int64_t time_ns() const override {
    wait();
    return marks_.time_of(*event_, stream_, reached_ns_);
  }
  int64_t since_ns(const Mark& earlier) const override {
    const auto& other = dynamic_cast<const EventMark&>(earlier);
    return nanoseconds(event_->elapsed_ms(*other.event_));
  }

 private:
  void note_reached() const {
    int64_t unknown = 0;
    reached_ns_.compare_exchange_strong(unknown, trace::now_ns());
  }

  StreamMarks& marks_;
  std::unique_ptr<Event> event_;
  Stream stream_;
  mutable std::atomic<int64_t> reached_ns_ = 0;  ///< when the host first knew of it
};

std::shared_ptr<const trace::Mark> StreamMarks::mark(Stream stream) {
  return std::make_shared<EventMark>(*this, take(), stream);
}

size_t StreamMarks::idle_count() const {
  const std::lock_guard lock(mutex_);
  return idle_.size();
}

std::unique_ptr<Event> StreamMarks::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto event = std::move(idle_.back());
      idle_.pop_back();
      return event;
    }
  }
  return create_();
}

void StreamMarks::give_back(std::unique_ptr<Event> event) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(event));
}

int64_t StreamMarks::time_of(const Event& event, Stream stream, int64_t reached_ns) {
  const std::lock_guard lock(mutex_);
  // The anchor must lie behind the event: drivers measure forwards.
  const bool is_usable = anchor_.event != nullptr && anchor_.time_ns > reached_ns &&
                         trace::now_ns() - anchor_.time_ns < kAnchorLife;
  if (!is_usable) {
    if (anchor_.event == nullptr) anchor_.event = create_();
    anchor_.time_ns = 0;  // the wait may be interrupted
    anchor_.event->record(stream);
    anchor_.event->synchronize();
    anchor_.time_ns = trace::now_ns();
  }
  return anchor_.time_ns - nanoseconds(anchor_.event->elapsed_ms(event));
}

std::shared_ptr<const trace::Mark> mark_stream(Stream stream) {
  if (stream.device.is_cpu() || runtime(stream.device).is_recording(stream)) return nullptr;
  static OnePerDevice<StreamMarks> devices;
  StreamMarks& marks = devices.get(stream.device, [&] {
    Runtime& device = runtime(stream.device);
    return new StreamMarks([&device] { return device.create_event(true); });
  });
  return marks.mark(stream);
}

}  // namespace cuop::backend
