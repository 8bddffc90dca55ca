// A GPU's stream whose clock only moves when a test says so.
#pragma once

#include <gtest/gtest.h>

#include "cuop/core/error.h"
#include "cuop/core/trace.h"

namespace cuop::trace {

inline constexpr Stream kFakeStream{{DeviceType::kCuda, 0}, nullptr};

/// Work that is started is queued: it takes `queue`'s time when it is done, not when it is started.
struct FakeQueue {
  int64_t queued_ns = 0;   ///< when the stream will have done all that it was given
  int64_t reached_ns = 0;  ///< how far it has come
  int waits = 0;           ///< of the host for the stream
  int marks = 0;           ///< that are alive
  bool is_capturing = false;
  bool has_failed = false;
  void start(int64_t duration_ns) { queued_ns += duration_ns; }
};
inline FakeQueue* fake_queue = nullptr;

class FakeMark final : public Mark {
 public:
  FakeMark() : at_ns_(fake_queue->queued_ns) { ++fake_queue->marks; }
  ~FakeMark() override { --fake_queue->marks; }
  FakeMark(const FakeMark&) = delete;
  FakeMark& operator=(const FakeMark&) = delete;
  bool is_reached() const override {
    if (fake_queue->has_failed) throw ExecutionError("event: the GPU failed");
    return fake_queue->reached_ns >= at_ns_;
  }
  void wait() const override {
    if (is_reached()) return;
    ++fake_queue->waits;
    fake_queue->reached_ns = at_ns_;
  }
  int64_t time_ns() const override {
    wait();
    return at_ns_;
  }
  int64_t since_ns(const Mark& earlier) const override {
    wait();
    return at_ns_ - dynamic_cast<const FakeMark&>(earlier).at_ns_;
  }

 private:
  int64_t at_ns_;
};

/// Streams are FakeQueues, and spans are recorded, for the time of a test.
class FakeStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    fake_queue = &queue_;
    before_ = set_mark_maker([](Stream) -> std::shared_ptr<const Mark> {
      if (fake_queue->is_capturing) return nullptr;
      return std::make_shared<const FakeMark>();
    });
    clear();
  }
  void TearDown() override {
    set_recording(false);
    clear();
    set_mark_maker(before_);
    EXPECT_EQ(queue_.marks, 0) << "marks must not outlive what they were made for";
  }
  /// As a kernel is launched.
  void launch(const char* name, int64_t duration_ns, Stream stream = kFakeStream) {
    Work work(name, stream);
    queue_.start(duration_ns);
    work.started();
  }

  FakeQueue queue_;

 private:
  MarkMaker before_ = nullptr;
};

}  // namespace cuop::trace
