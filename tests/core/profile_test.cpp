#include "cuop/core/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/fake_stream.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using trace::FakeMark;

/// A call of the CPU.
trace::Finished on_cpu(const std::string& name, int64_t ns) {
  trace::Finished finished;
  finished.event.name = name;
  finished.event.category = "op";
  finished.event.duration_ns = ns;
  return finished;
}

class ProfilerTest : public trace::FakeStreamTest {
 protected:
  trace::Finished on_gpu(const std::string& name, int64_t ns) {
    trace::Finished finished = on_cpu(name, 5);
    const auto begin = std::make_shared<const FakeMark>();
    queue_.start(ns);
    finished.work.push_back({trace::kFakeStream, begin, std::make_shared<const FakeMark>()});
    return finished;
  }
  Profiler profiler_;
};

TEST_F(ProfilerTest, LinesComeInOrderWhenTheGpuHasDoneTheWork) {
  profiler_.add(on_gpu("matmul", 150'000));
  EXPECT_EQ(profiler_.ready_lines(), "");
  profiler_.add(on_cpu("add", 3400));
  EXPECT_EQ(profiler_.ready_lines(), "") << "the first is still going on";
  queue_.reached_ns = 150'000;
  EXPECT_EQ(profiler_.ready_lines(), "matmul_kernel: 0.15ms\nadd_kernel: 0.0034ms\n");
  EXPECT_EQ(profiler_.ready_lines(), "");
  EXPECT_EQ(queue_.waits, 0);
}

TEST_F(ProfilerTest, TimesHaveTheDigitsThatCount) {
  for (const auto& [ns, text] :
       std::vector<std::pair<int64_t, const char*>>{{1'234'567'890, "1235ms"},
                                                    {12'345'678, "12.3ms"},
                                                    {1'234'567, "1.23ms"},
                                                    {150'000, "0.15ms"},
                                                    {99'000, "0.0990ms"},
                                                    {0, "0.0000ms"}}) {
    profiler_.add(on_cpu("op", ns));
    EXPECT_EQ(profiler_.ready_lines(), std::string("op_kernel: ") + text + "\n");
  }
}

TEST_F(ProfilerTest, RowsAreSumsByNameAndDeviceTheLongestFirst) {
  profiler_.add(on_cpu("add", 1'000'000));
  profiler_.add(on_gpu("add", 2'000'000));
  profiler_.add(on_gpu("matmul", 3'000'000));
  profiler_.add(on_gpu("add", 4'000'000));
  EXPECT_THAT(profiler_.remaining_lines(), HasSubstr("matmul_kernel: 3.00ms\nadd_kernel: 4.00ms"));
  EXPECT_GE(queue_.waits, 1);
  const auto rows = profiler_.rows();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].name, "add");
  EXPECT_EQ(rows[0].device, "cuda:0");
  EXPECT_EQ(rows[0].calls, 2);
  EXPECT_DOUBLE_EQ(rows[0].total_ms, 6.0);
  EXPECT_DOUBLE_EQ(rows[0].mean_ms, 3.0);
  EXPECT_DOUBLE_EQ(rows[0].share, 0.6);
  EXPECT_EQ(rows[1].name, "matmul");
  EXPECT_EQ(rows[2].device, "cpu");
  EXPECT_EQ(to_text(rows),
            "operation  device      calls     total ms      mean ms   share\n"
            "add        cuda:0          2       6.0000       3.0000   60.0%\n"
            "matmul     cuda:0          1       3.0000       3.0000   30.0%\n"
            "add        cpu             1       1.0000       1.0000   10.0%\n");
}

TEST_F(ProfilerTest, AFailedGpuLosesItsTimesAndNothingElse) {
  profiler_.add(on_gpu("matmul", 10));
  profiler_.add(on_cpu("add", 1'000'000));
  queue_.has_failed = true;
  EXPECT_EQ(profiler_.ready_lines(), "add_kernel: 1.00ms\n");
  EXPECT_EQ(profiler_.lost_count(), 1);
  EXPECT_EQ(profiler_.rows().size(), 1u);
  queue_.has_failed = false;
}

class ProfilingTest : public trace::FakeStreamTest {
 protected:
  void SetUp() override {
    FakeStreamTest::SetUp();
    set_profiling_output([this](const std::string& text) { written_ += text; });
  }
  void TearDown() override {
    enable_profiling(false);
    set_profiling_output({});
    enable_profiling(true);  // forgets the test's operations
    enable_profiling(false);
    FakeStreamTest::TearDown();
  }
  std::string written_;
  int calls_ = 0;
};

TEST_F(ProfilingTest, TellsOutermostOperationsAndTheTableAtTheEnd) {
  EXPECT_FALSE(is_profiling());
  enable_profiling();
  EXPECT_TRUE(is_profiling());
  {
    const trace::Span span("matmul", "op");
    {
      const trace::Span part("copy", "op");
      launch("copy", 50'000);
    }
    launch("gemm", 100'000);
  }
  { const trace::Span span("exchange", "comm"); }
  {
    trace::Span span("add", "op");
    span.set_category("record");
  }
  EXPECT_EQ(written_, "") << "nothing waits for the GPU";
  EXPECT_EQ(queue_.waits, 0);
  queue_.reached_ns = queue_.queued_ns;
  { launch("fill", 1'000'000); }
  EXPECT_EQ(written_, "matmul_kernel: 0.15ms\n");
  const auto rows = profiling_rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name, "fill");
  EXPECT_EQ(written_, "matmul_kernel: 0.15ms\nfill_kernel: 1.00ms\n");
  enable_profiling(false);
  EXPECT_FALSE(is_profiling());
  EXPECT_THAT(written_, HasSubstr("ms\noperation  device"));
  EXPECT_THAT(written_, HasSubstr("matmul     cuda:0          1       0.1500"));
  EXPECT_THAT(written_, testing::Not(HasSubstr("exchange")));
  EXPECT_THAT(written_, testing::Not(HasSubstr("add")));
}

TEST_F(ProfilingTest, EachTurningOnBeginsANewTable) {
  enable_profiling();
  { launch("fill", 10); }
  enable_profiling();  // again: changes nothing
  EXPECT_EQ(profiling_rows().size(), 1u);
  enable_profiling(false);
  EXPECT_EQ(profiling_rows().size(), 1u) << "the table stays";
  enable_profiling();
  EXPECT_THAT(profiling_rows(), IsEmpty());
  EXPECT_EQ(profiling_summary(),
            "operation  device      calls     total ms      mean ms   share\n");
}

TEST_F(ProfilingTest, TheOutputMayRunOperationsItself) {
  set_profiling_output([this](const std::string&) {
    ++calls_;
    const trace::Span span("printing", "op");
  });
  enable_profiling();
  { const trace::Span span("add", "op"); }
  EXPECT_EQ(calls_, 1);
  const auto rows = profiling_rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].name, "add");
}

}  // namespace
}  // namespace cuop
