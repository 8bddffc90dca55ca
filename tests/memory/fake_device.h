// A device that exists on paper: addresses that nobody touches, work that is done when the test
// says so, and a note of everything that a pool does wrong with either.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <random>

#include "cuop/core/interrupt.h"
#include "cuop/memory/upstream.h"

namespace cuop::memory::testing {

inline constexpr int64_t kMiB = int64_t{1} << 20;
inline constexpr int64_t kGranule = 2 * kMiB;
inline constexpr Device kGpu{DeviceType::kCuda, 0};

inline Stream stream(uintptr_t number) { return {kGpu, reinterpret_cast<void*>(number)}; }

class FakeUpstream final : public Upstream {
 public:
  FakeUpstream(bool can_map, int64_t total, int64_t large_granule = kGranule)
      : can_map_(can_map), total_(total), large_granule_(large_granule) {}
  ~FakeUpstream() override {
    EXPECT_TRUE(ranges_.empty()) << "address ranges were not given back";
    EXPECT_TRUE(mapped_.empty()) << "granules were not given back";
  }

  Device device() const override { return kGpu; }
  std::string name() const override { return can_map_ ? "fake, mapped" : "fake, plain"; }
  bool can_map() const override { return can_map_; }
  int64_t granule() const override { return kGranule; }

  void* acquire(int64_t bytes) override {
    called();
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(bytes % kGranule, 0);
    if (bytes > largest_range) return nullptr;
    if (!can_map_ && !take(bytes)) return nullptr;
    const int64_t start = next_ + (can_map_ ? 0 : plain_offset);
    next_ += bytes + kGranule;  // a gap, so that segments never touch
    ranges_[start] = bytes;
    return reinterpret_cast<void*>(start);
  }
  void release(void* range, int64_t bytes) noexcept override {
    called();
    const std::lock_guard lock(mutex_);
    const auto entry = ranges_.find(reinterpret_cast<int64_t>(range));
    ASSERT_NE(entry, ranges_.end()) << "a range was given back that was not taken";
    EXPECT_EQ(entry->second, bytes);
    if (!can_map_) used_ -= bytes;
    ranges_.erase(entry);
  }
  int64_t large_granule() const override { return large_granule_; }
  int64_t plain_offset = 0;  ///< of plain ranges, from a multiple of the granule; below a granule
  int64_t largest_range =
      std::numeric_limits<int64_t>::max();  ///< that the process has addresses for
  bool map(void* address, int64_t bytes, int64_t piece) override {
    called();
    const std::lock_guard lock(mutex_);
    if (!take(bytes)) return false;
    for_pieces(address, bytes, piece, [&](int64_t at) {
      EXPECT_TRUE(mapped_.emplace(at, piece).second) << "mapped twice";
    });
    return true;
  }
  void unmap(void* address, int64_t bytes, int64_t piece) noexcept override {
    called();
    if (on_unmap) on_unmap(address, bytes);
    const std::lock_guard lock(mutex_);
    for_pieces(address, bytes, piece, [&](int64_t at) {
      const auto mapped = mapped_.find(at);
      ASSERT_NE(mapped, mapped_.end()) << "unmapped what was not mapped";
      EXPECT_EQ(mapped->second, piece) << "unmapped a part of a piece";
      mapped_.erase(mapped);
    });
    used_ -= bytes;
  }
  DeviceMemory memory() const override {
    const std::lock_guard lock(mutex_);
    return {total_ - used_ - others_, total_};
  }

  /// What neighbours hold from now on.
  void set_others(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    others_ = bytes;
  }
  int64_t used() const {
    const std::lock_guard lock(mutex_);
    return used_;
  }
  int64_t calls() const { return calls_; }

  std::function<void()> on_call;                 ///< within every call
  std::function<void(void*, int64_t)> on_unmap;  ///< before memory goes

 private:
  void called() {
    ++calls_;
    if (on_call) on_call();
  }
  bool take(int64_t bytes) {
    if (used_ + others_ + bytes > total_) return false;
    used_ += bytes;
    return true;
  }
  template <class Visit>
  void for_pieces(void* address, int64_t bytes, int64_t piece, Visit&& visit) {
    const auto start = reinterpret_cast<int64_t>(address);
    EXPECT_TRUE(piece == kGranule || piece == large_granule_);
    EXPECT_EQ(start % piece, 0);
    EXPECT_EQ(bytes % piece, 0);
    auto range = ranges_.upper_bound(start);
    ASSERT_NE(range, ranges_.begin());
    --range;
    EXPECT_LE(start + bytes, range->first + range->second) << "outside every range";
    for (int64_t at = start; at < start + bytes; at += piece) visit(at);
  }

  const bool can_map_;
  const int64_t total_;
  const int64_t large_granule_;
  mutable std::mutex mutex_;
  int64_t used_ = 0;
  int64_t others_ = 0;
  int64_t next_ = int64_t{1} << 40;
  std::map<int64_t, int64_t> ranges_;
  std::map<int64_t, int64_t> mapped_;  ///< pieces
  std::atomic<int64_t> calls_ = 0;
};

/// Streams whose work finishes late: on wait, or by chance when somebody asks.
class FakeOrder final : public StreamOrder {
 public:
  explicit FakeOrder(double progress = 0.0, unsigned seed = 1)
      : progress_(progress), random_(seed) {}
  ~FakeOrder() override { EXPECT_EQ(events_, 0) << "events were not recycled"; }

  /// Gives the stream a piece of work; answers its number there.
  int64_t submit(Stream s) {
    const std::lock_guard lock(mutex_);
    return ++lines_[s.handle].submitted;
  }
  /// Whether work number `work` of a stream is done or comes before what `on` is given next.
  bool is_ordered(void* of, int64_t work, void* on) {
    const std::lock_guard lock(mutex_);
    return of == on || lines_[of].done >= work || lines_[on].waits[of] >= work;
  }
  bool is_done_on_host(void* of, int64_t work) {
    const std::lock_guard lock(mutex_);
    return lines_[of].done >= work;
  }
  void finish_all() {
    const std::lock_guard lock(mutex_);
    for (auto& [handle, line] : lines_) finish(handle, line.submitted);
  }
  int64_t records() const { return records_; }
  int64_t waits() const { return waits_; }
  int64_t stream_waits() const { return stream_waits_; }

  Event record(Stream s) noexcept override {
    called();
    const std::lock_guard lock(mutex_);
    ++records_;
    Line& line = lines_[s.handle];
    if (line.done == line.submitted) return nullptr;
    ++events_;
    return new Point{s.handle, line.submitted};
  }
  bool is_done(Event event) noexcept override {
    called();
    const std::lock_guard lock(mutex_);
    const Point& point = *static_cast<Point*>(event);
    if (std::bernoulli_distribution(progress_)(random_)) finish(point.stream, point.work);
    return lines_[point.stream].done >= point.work;
  }
  void wait(Event event) noexcept override {
    called();
    const std::lock_guard lock(mutex_);
    ++waits_;
    const Point& point = *static_cast<Point*>(event);
    finish(point.stream, point.work);
  }
  void wait_interruptibly(Event event) override {
    if (is_interrupted_) throw Interrupted();
    wait(event);
  }
  /// From now on, or no longer, the user interrupts every wait.
  void set_interrupted(bool is) { is_interrupted_ = is; }
  void make_wait(Stream s, Event event) noexcept override {
    called();
    const std::lock_guard lock(mutex_);
    ++stream_waits_;
    const Point& point = *static_cast<Point*>(event);
    Line& line = lines_[s.handle];
    line.awaited.push_back({++line.submitted, point});  // waiting is work too
    auto& waits = line.waits;
    const auto raise = [&](void* of, int64_t work) { waits[of] = std::max(waits[of], work); };
    raise(point.stream, point.work);
    for (const auto& [of, work] : std::map(lines_[point.stream].waits)) raise(of, work);
  }
  void recycle(Event event) noexcept override {
    called();
    const std::lock_guard lock(mutex_);
    --events_;
    delete static_cast<Point*>(event);
  }

  std::function<void()> on_call;  ///< within every call

 private:
  struct Point {
    void* stream;
    int64_t work;
  };
  struct Line {
    int64_t submitted = 0;
    int64_t done = 0;
    std::vector<std::pair<int64_t, Point>> awaited;  ///< own work, and what it waits for
    std::map<void*, int64_t> waits;  ///< by stream: its work up to this number comes first
  };
  void called() const {
    if (on_call) on_call();
  }
  /// The stream's work up to the number is done, and so is everything that it waited for.
  void finish(void* handle, int64_t work) {
    Line& line = lines_[handle];
    if (line.done >= work) return;
    line.done = work;
    std::vector<Point> before;
    std::erase_if(line.awaited, [&](const auto& entry) {
      if (entry.first > work) return false;
      before.push_back(entry.second);
      return true;
    });
    for (const Point& point : before) finish(point.stream, point.work);
  }

  const double progress_;
  std::mutex mutex_;
  std::mt19937 random_;
  std::map<void*, Line> lines_;
  int64_t events_ = 0;
  std::atomic<int64_t> records_ = 0, waits_ = 0, stream_waits_ = 0;
  std::atomic<bool> is_interrupted_ = false;
};

}  // namespace cuop::memory::testing
