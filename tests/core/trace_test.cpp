#include "cuop/core/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/core/fake_stream.h"

namespace cuop::trace {
namespace {

using ::testing::IsEmpty;

/// The events of streams, in the order of their start.
std::vector<Event> stream_events() {
  std::vector<Event> found;
  for (Event& event : events()) {
    if (event.category == "gpu") found.push_back(std::move(event));
  }
  return found;
}

Event event_named(const std::string& name, const std::string& category = "op") {
  for (const Event& event : events()) {
    if (event.name == name && event.category == category) return event;
  }
  ADD_FAILURE() << "no event " << name;
  return {};
}

TEST(Trace, RecordsOnlyWhileOn) {
  clear();
  {
    const Span span("before", "op");
    EXPECT_FALSE(span.is_open());
  }
  set_recording(true);
  set_thread_rank(2);
  {
    Span span("inside", "comm");
    EXPECT_TRUE(span.is_open());
    span.add_bytes(128);
    span.add_flops(3.0);
  }
  set_thread_rank(0);
  set_recording(false);
  const auto all = events();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].rank, 2);
  EXPECT_EQ(all[0].bytes, 128);
  EXPECT_EQ(all[0].flops, 3.0);
  EXPECT_GE(all[0].duration_ns, 0);
  EXPECT_EQ(all[0].stream, "");
  EXPECT_EQ(all[0].gpu_ns, 0);
  clear();
}

TEST(Trace, ThreadsWithoutARankHaveTheProcesss) {
  clear();
  set_recording(true);
  set_process_rank(5);
  std::thread([] { const Span span("of the process", "op"); }).join();
  std::thread([] {
    set_thread_rank(1);
    const Span span("of its own", "op");
  }).join();
  set_process_rank(0);
  set_recording(false);
  EXPECT_EQ(event_named("of the process").rank, 5);
  EXPECT_EQ(event_named("of its own").rank, 1);
  clear();
}

TEST(Trace, SpansNestWithinTheirCategoryAndThread) {
  clear();
  set_recording(true);
  {
    const Span call("call", "dist");
    const Span outer("outer", "op");
    const Span inner("inner", "op");
    std::thread([] { const Span beside("beside", "op"); }).join();
  }
  {
    Span recorded("recorded", "op");
    recorded.set_category("record");
  }
  set_recording(false);
  EXPECT_TRUE(event_named("call", "dist").is_outermost);
  EXPECT_TRUE(event_named("outer").is_outermost);
  EXPECT_FALSE(event_named("inner").is_outermost);
  EXPECT_TRUE(event_named("beside").is_outermost);
  EXPECT_NE(event_named("beside").thread, event_named("outer").thread);
  EXPECT_EQ(event_named("recorded", "record").name, "recorded");
  clear();
}

using StreamTrace = FakeStreamTest;

TEST_F(StreamTrace, WorkIsTimedInItsStreamAndNothingWaitsBeforeItIsRead) {
  set_recording(true);
  queue_.start(1000);  // what the stream was doing before
  {
    Span span("matmul", "op");
    span.add_flops(64.0);
    launch("gemm", 150'000);
  }
  set_recording(false);
  EXPECT_EQ(queue_.waits, 0);
  const auto found = stream_events();
  EXPECT_GE(queue_.waits, 1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "matmul");
  EXPECT_EQ(found[0].stream, "cuda:0 default stream");
  EXPECT_EQ(found[0].start_ns, 1000);
  EXPECT_EQ(found[0].duration_ns, 150'000);
  EXPECT_EQ(found[0].flops, 64.0);
  EXPECT_EQ(event_named("matmul").gpu_ns, 150'000);
}

TEST_F(StreamTrace, ASpanGoesFromItsFirstStartToItsLastAndCoversItsParts) {
  set_recording(true);
  {
    const Span span("layer_norm", "op");
    launch("first", 10);
    queue_.start(5);  // another thread's work in the same stream
    {
      const Span part("copy", "op");
      launch("copy", 20);
    }
    launch("last", 30);
  }
  set_recording(false);
  EXPECT_EQ(event_named("copy", "gpu").duration_ns, 20);
  EXPECT_EQ(event_named("layer_norm", "gpu").start_ns, 0);
  EXPECT_EQ(event_named("layer_norm", "gpu").duration_ns, 65);
}

TEST_F(StreamTrace, APartCanBeTheFirstOrTheLastWork) {
  set_recording(true);
  {
    const Span span("softmax", "op");
    {
      const Span part("contiguous", "op");
      launch("copy", 7);
    }
    launch("softmax", 5);
    {
      const Span part("copy", "op");
      launch("copy", 3);
    }
  }
  set_recording(false);
  EXPECT_EQ(event_named("softmax", "gpu").duration_ns, 15);
}

TEST_F(StreamTrace, WhatAStreamWaitsForTheHostsOtherWorkIsNotTheSpans) {
  set_recording(true);
  {
    const Span span("sum", "op");
    launch("clear", 7);
    {
      const Span part("reduce", "op");
      launch("first", 5);
      {
        const Interruption compiling;
        const Interruption within_it;
        queue_.start(1'000'000);  // the stream waits, or works for others
      }
      launch("second", 3);
      launch("third", 2);
    }
    queue_.start(4);  // between launches as before
    launch("last", 1);
  }
  set_recording(false);
  EXPECT_EQ(event_named("reduce").gpu_ns, 5 + 3 + 2);
  EXPECT_EQ(event_named("sum").gpu_ns, 7 + 5 + 3 + 2 + 4 + 1);
}

TEST_F(StreamTrace, AnInterruptionOutsideOfSpansDoesNothing) {
  const Interruption compiling;
  set_recording(true);
  {
    const Span span("exp", "op");
    launch("exp", 5);
    launch("exp", 6);
  }
  set_recording(false);
  EXPECT_EQ(event_named("exp").gpu_ns, 11);
}

TEST_F(StreamTrace, TimersNestAndCapturedWorkHasNoTime) {
  StreamTimer outer(kFakeStream);
  queue_.start(10);
  {
    StreamTimer inner(kFakeStream);
    queue_.start(20);
    {
      const Interruption compiling;
      queue_.start(1000);
    }
    queue_.start(30);
    EXPECT_EQ(stream_ns(inner.stop()), 50);
  }
  EXPECT_EQ(stream_ns(outer.stop()), 60);
  queue_.is_capturing = true;
  StreamTimer captured(kFakeStream);
  queue_.start(10);
  EXPECT_TRUE(captured.stop().empty());
}

TEST_F(StreamTrace, StreamsAreToldApart) {
  int first = 0, second = 0;
  set_recording(true);
  {
    const Span span("both", "op");
    launch("a", 10, {{DeviceType::kCuda, 0}, &first});
    launch("b", 20, {{DeviceType::kCuda, 0}, &second});
  }
  { launch("c", 5, {{DeviceType::kCuda, 1}, &first}); }
  set_recording(false);
  const auto found = stream_events();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].stream, "cuda:0 stream 1");
  EXPECT_EQ(found[1].stream, "cuda:0 stream 2");
  EXPECT_EQ(found[2].stream, "cuda:1 stream 1");
  EXPECT_EQ(event_named("both").gpu_ns, 30);
}

TEST_F(StreamTrace, WorkOutsideOfSpansGetsOneOfItsOwn) {
  set_recording(true);
  launch("copy", 40);
  set_recording(false);
  EXPECT_EQ(event_named("copy").gpu_ns, 40);
  EXPECT_EQ(event_named("copy", "gpu").duration_ns, 40);
}

TEST_F(StreamTrace, WhatAGraphRecordsOrAFailureEndsHasNoStreamTime) {
  set_recording(true);
  queue_.is_capturing = true;
  {
    const Span span("captured", "op");
    launch("kernel", 10);
  }
  queue_.is_capturing = false;
  {
    const Span span("failed", "op");
    const Work work("kernel", kFakeStream);  // never started
  }
  set_recording(false);
  EXPECT_THAT(stream_events(), IsEmpty());
  EXPECT_EQ(event_named("captured").gpu_ns, 0);
  EXPECT_EQ(event_named("failed").gpu_ns, 0);
}

TEST_F(StreamTrace, NothingIsMarkedWhenNobodyListens) {
  {
    const Span span("matmul", "op");
    launch("gemm", 10);
  }
  EXPECT_EQ(queue_.marks, 0);
  EXPECT_THAT(events(), IsEmpty());
}

}  // namespace
}  // namespace cuop::trace
