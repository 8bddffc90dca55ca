#include "tests/simulator/stream.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <random>
#include <thread>

#include "tests/simulator/address_space.h"
#include "tests/simulator/device.h"
#include "tests/simulator/settings.h"

namespace cuop::simulator {

namespace {

/// Of all streams and their queues. Leaked: threads may still work while the process ends.
struct Scheduler {
  std::mutex mutex;
  std::condition_variable completed;  ///< some operation
  std::vector<std::weak_ptr<Stream>> streams;
};
Scheduler& scheduler() {
  static auto* made = new Scheduler;
  return *made;
}

}  // namespace

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool is_done(const Mark& mark) {
  if (mark.stream == nullptr) return true;
  const std::lock_guard lock(scheduler().mutex);
  return mark.stream->completed_ >= mark.ticket;
}

void wait_for(const Mark& mark) {
  if (mark.stream == nullptr) return;
  std::unique_lock lock(scheduler().mutex);
  scheduler().completed.wait(lock, [&] { return mark.stream->completed_ >= mark.ticket; });
}

std::shared_ptr<Stream> Stream::start(std::shared_ptr<Stream> stream) {
  {
    const std::lock_guard lock(scheduler().mutex);
    scheduler().streams.push_back(stream);
  }
  std::thread([stream] { stream->run(); }).detach();
  return stream;
}

std::shared_ptr<Stream> Stream::make(int device, bool is_blocking, int priority) {
  return start(std::shared_ptr<Stream>(new Stream(device, is_blocking, false, priority)));
}

std::shared_ptr<Stream> Stream::make_legacy(int device) {
  return start(std::shared_ptr<Stream>(new Stream(device, true, true, 0)));
}

Stream& legacy_stream(int device) {
  static std::mutex mutex;
  static auto* streams = new std::array<std::shared_ptr<Stream>, kMaxSimulated>;
  const std::lock_guard lock(mutex);
  auto& stream = (*streams)[static_cast<size_t>(device)];
  if (stream == nullptr) stream = Stream::make_legacy(device);
  return *stream;
}

std::vector<Mark> last_marks(int device, bool only_blocking) {
  const std::lock_guard lock(scheduler().mutex);
  std::vector<Mark> marks;
  for (const auto& weak : scheduler().streams) {
    const auto stream = weak.lock();
    if (stream == nullptr || stream->device_ != device) continue;
    if (only_blocking && !stream->is_blocking_) continue;
    marks.push_back({stream, stream->submitted_});
  }
  return marks;
}

Mark Stream::last() {
  const std::lock_guard lock(scheduler().mutex);
  return {shared_from_this(), submitted_};
}

Mark Stream::submit(Work work, std::vector<Mark> after) {
  if (is_legacy_) {
    for (Mark& mark : last_marks(device_, true)) {
      if (mark.stream.get() != this) after.push_back(std::move(mark));
    }
  } else if (is_blocking_) {
    after.push_back(legacy_stream(device_).last());
  }
  const std::lock_guard lock(scheduler().mutex);
  queue_.push_back({std::move(work), std::move(after)});
  ++submitted_;
  arrived_.notify_one();
  return {shared_from_this(), submitted_};
}

void Stream::close() {
  const std::lock_guard lock(scheduler().mutex);
  is_closed_ = true;
  auto& all = scheduler().streams;
  std::erase_if(all, [](const auto& weak) { return weak.expired(); });
  arrived_.notify_one();
}

void Stream::run() {
  Scheduler& shared = scheduler();
  std::minstd_rand random(static_cast<unsigned>(now_ns()));
  std::unique_lock lock(shared.mutex);
  while (true) {
    arrived_.wait(lock, [&] { return !queue_.empty() || is_closed_; });
    if (queue_.empty()) return;
    Operation operation = std::move(queue_.front());
    queue_.pop_front();
    for (const Mark& mark : operation.after) {
      shared.completed.wait(lock, [&] { return mark.stream->completed_ >= mark.ticket; });
    }
    lock.unlock();
    if (settings().delay_us > 0) {
      std::this_thread::sleep_for(
          std::chrono::microseconds(static_cast<int64_t>(random()) % settings().delay_us));
    }
    if (!is_lost(device_)) {
      const Result result = operation.work();
      if (result != Result::kSuccess) lose(device_, result);
    }
    operation = {};  // what it held is let go before anybody hears that it is done
    lock.lock();
    ++completed_;
    shared.completed.notify_all();
  }
}

}  // namespace cuop::simulator
