#include "cuop/backend/stream_mark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"

namespace cuop::backend {
namespace {

constexpr Stream kStream{{DeviceType::kCuda, 0}, nullptr};

/// A device whose clock is set by hand, and what was asked of its events.
struct FakeDevice {
  double now_ms = 0.0;
  bool is_done = false;
  int created = 0;
  int recorded = 0;
  int waits = 0;
};

class FakeEvent final : public Event {
 public:
  explicit FakeEvent(FakeDevice& device) : device_(device) { ++device_.created; }
  void record(Stream) override {
    at_ms_ = device_.now_ms;
    ++device_.recorded;
  }
  void wait(Stream) const override {}
  void synchronize() const override { ++device_.waits; }
  bool is_done() const override { return device_.is_done; }
  double elapsed_ms(const Event& since) const override {
    const double elapsed = at_ms_ - dynamic_cast<const FakeEvent&>(since).at_ms_;
    if (elapsed < 0) throw ExecutionError("event: measured backwards");
    return elapsed;
  }

 private:
  FakeDevice& device_;
  double at_ms_ = 0.0;
};

class StreamMarkTest : public testing::Test {
 protected:
  FakeDevice device_;
  StreamMarks marks_{[this] { return std::make_unique<FakeEvent>(device_); }};
};

TEST_F(StreamMarkTest, TimeBetweenMarksIsTheStreams) {
  const auto begin = marks_.mark(kStream);
  device_.now_ms = 0.15;
  const auto end = marks_.mark(kStream);
  EXPECT_EQ(device_.waits, 0);
  EXPECT_EQ(end->since_ns(*begin), 150'000);
  EXPECT_FALSE(end->is_reached());
  device_.is_done = true;
  EXPECT_TRUE(end->is_reached());
}

TEST_F(StreamMarkTest, EventsAreUsedAgain) {
  for (int i = 0; i < 10; ++i) {
    const auto begin = marks_.mark(kStream);
    const auto end = marks_.mark(kStream);
  }
  EXPECT_EQ(device_.created, 2);
  EXPECT_EQ(marks_.idle_count(), 2u);
}

TEST_F(StreamMarkTest, MomentsAreOnTheHostsClock) {
  const int64_t before = trace::now_ns();
  const auto first = marks_.mark(kStream);
  device_.now_ms = 2.0;
  const auto second = marks_.mark(kStream);
  device_.now_ms = 5.0;
  first->wait();
  second->wait();
  const int64_t first_ns = first->time_ns();
  const int recorded = device_.recorded;
  const int64_t second_ns = second->time_ns();
  EXPECT_EQ(device_.recorded, recorded)
      << "one look at both clocks serves all that happened before";
  EXPECT_EQ(second_ns - first_ns, 2'000'000);
  EXPECT_LE(first_ns, trace::now_ns() - 5'000'000);
  EXPECT_GE(first_ns, before - 5'000'000);
}

TEST_F(StreamMarkTest, TheHostsClockIsSetAnewForWhatHappensLater) {
  marks_.mark(kStream)->time_ns();
  device_.now_ms = 3.0;
  const auto later = marks_.mark(kStream);
  device_.now_ms = 4.0;
  const int64_t at_ns = later->time_ns();  // FakeEvent refuses to measure backwards
  EXPECT_LE(at_ns, trace::now_ns() - 1'000'000);
}

TEST(StreamMark, TheCpuHasNone) { EXPECT_EQ(mark_stream({kCpu}), nullptr); }

}  // namespace
}  // namespace cuop::backend
