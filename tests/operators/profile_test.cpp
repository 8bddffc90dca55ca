#include "cuop/operators/tuned/profile.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cuop/operators/benchmark.h"
#include "cuop/operators/tuned/config.h"
#include "tests/core/fake_stream.h"
#include "tests/own_cache.h"

namespace cuop {
namespace {

CallRecord call_on(Device device) {
  CallRecord call;
  call.device = device;
  call.cost = {2e6, 1000};
  call.before_ms = 0.5;
  call.running_ms = 2.0;
  call.choosing_ms = 7.0;
  call.kernel_type = "tiled";
  return call;
}

TEST(CallProfile, OnTheCpuTheKernelRunsInTheCall) {
  const PerformanceProfile profile = profile_of(call_on(kCpu));
  EXPECT_DOUBLE_EQ(profile.kernel_time_ms, 2.0);
  EXPECT_DOUBLE_EQ(profile.launch_overhead_ms, 0.5);
  EXPECT_DOUBLE_EQ(profile.execution_time, 2.5);
  EXPECT_DOUBLE_EQ(profile.compilation_time_ms, 7.0);
  EXPECT_DOUBLE_EQ(profile.gflops, 1.0);
  EXPECT_DOUBLE_EQ(profile.bandwidth_gb_s, 0.0005);
  EXPECT_EQ(profile.kernel_type, "tiled");
}

using GpuCallProfile = trace::FakeStreamTest;

TEST_F(GpuCallProfile, TheStreamsTimeIsTheKernelsAndStartingItIsOverhead) {
  CallRecord call = call_on({DeviceType::kCuda, 0});
  call.compiling_ms = 1.5;
  trace::StreamTimer timer(trace::kFakeStream);
  queue_.start(4'000'000);
  call.work = timer.stop();
  EXPECT_EQ(queue_.waits, 0);
  const PerformanceProfile profile = profile_of(call);
  EXPECT_EQ(queue_.waits, 1);
  EXPECT_DOUBLE_EQ(profile.kernel_time_ms, 4.0);
  EXPECT_DOUBLE_EQ(profile.launch_overhead_ms, 1.0);
  EXPECT_DOUBLE_EQ(profile.execution_time, 5.0);
  EXPECT_DOUBLE_EQ(profile.compilation_time_ms, 8.5);
  EXPECT_DOUBLE_EQ(profile.gflops, 0.5);
}

TEST_F(GpuCallProfile, WhatTheStreamWaitsForTheCompilerIsNotTheKernels) {
  CallRecord call = call_on({DeviceType::kCuda, 0});
  trace::StreamTimer timer(trace::kFakeStream);
  queue_.start(1'000'000);  // a part that needed no compiling
  {
    const trace::Interruption compiling;
    const trace::Interruption reading_the_cache;
    queue_.start(100'000'000);
  }
  queue_.start(3'000'000);
  call.work = timer.stop();
  EXPECT_DOUBLE_EQ(profile_of(call).kernel_time_ms, 4.0);
}

TEST_F(GpuCallProfile, WithoutMarksTheKernelsTimeIsUnknown) {
  const PerformanceProfile profile = profile_of(call_on({DeviceType::kCuda, 0}));
  EXPECT_EQ(profile.kernel_time_ms, 0.0);
  EXPECT_EQ(profile.gflops, 0.0);
  EXPECT_DOUBLE_EQ(profile.launch_overhead_ms, 2.5);
}

/// Every timing takes twice the one before.
class FakeClock final : public tune::Clock {
 public:
  explicit FakeClock(double first_ms) : next_ms_(first_ms) {}
  double time_ms(const std::function<void()>& work) override {
    work();
    ++timings;
    return std::exchange(next_ms_, next_ms_ * 2.0);
  }
  double seconds() override { return 0.0; }
  int timings = 0;

 private:
  double next_ms_;
};

TEST(Roof, TheShortestOfSomeRunsCounts) {
  FakeClock clock(4.0);
  const Roof roof = measure_roof(DType::kFloat32, kCpu, clock);
  // The first copy of 64 MiB, to and fro, is the shortest; the products come after its 4 timings.
  EXPECT_NEAR(roof.bytes_per_second, 2.0 * 0x1p26 / 4e-3, 1.0);
  if (roof.flops_per_second > 0.0) {
    EXPECT_NEAR(roof.flops_per_second, 2.0 * 0x1p27 / 128e-3, 1.0);
    EXPECT_EQ(clock.timings, 4 + 5);
  }
}

TEST(Roof, ShareIsTheBestTimeOverTheNeededOne) {
  const Roof roof{1e9, 1e10};
  EXPECT_DOUBLE_EQ(percent_of_roof({1e6, 0}, 2.0, roof), 50.0);
  EXPECT_DOUBLE_EQ(percent_of_roof({0.0, 10'000'000}, 4.0, roof), 25.0);
  EXPECT_DOUBLE_EQ(percent_of_roof({1e6, 10'000'000}, 4.0, roof), 25.0) << "the greater of both";
  EXPECT_EQ(percent_of_roof({1e6, 1}, 0.0, roof), 0.0);
  EXPECT_EQ(percent_of_roof({1e6, 1}, 1.0, Roof{}), 0.0) << "an unknown roof";
}

TEST(Roof, IsKeptAsText) {
  Roof read;
  EXPECT_TRUE(parse_roof(to_text(Roof{1.25e12, 3.5e9}), read));
  EXPECT_DOUBLE_EQ(read.flops_per_second, 1.25e12);
  EXPECT_DOUBLE_EQ(read.bytes_per_second, 3.5e9);
  for (const char* text : {"", "tiled", "1 flop/s", "1 flop/s 0 B/s", "1 flop/s 2 B/s 3"}) {
    EXPECT_FALSE(parse_roof(text, read)) << text;
  }
  EXPECT_DOUBLE_EQ(read.bytes_per_second, 3.5e9);
}

TEST(Roof, IsKnownOnceSomebodyHasMeasuredIt) {
  {
    const test::OwnCache cache;
    const Roof roof = measured_roof(DType::kFloat64);
    ASSERT_TRUE(known_roof(DType::kFloat64).has_value());
    EXPECT_EQ(known_roof(DType::kFloat64)->bytes_per_second, roof.bytes_per_second);
  }
  EXPECT_TRUE(std::isnan(profile_of(CallRecord{}).percent_of_roof));
}

TEST(Roof, IsMeasuredOnceAProcess) {
  const Roof first = measured_roof(DType::kFloat32), second = measured_roof(DType::kFloat32);
  EXPECT_GT(first.bytes_per_second, 0.0);
  EXPECT_EQ(first.bytes_per_second, second.bytes_per_second);
  EXPECT_EQ(first.flops_per_second, second.flops_per_second);
}

}  // namespace
}  // namespace cuop
