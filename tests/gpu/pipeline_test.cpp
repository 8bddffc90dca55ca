// Stages of chunks on a GPU that are brought and taken away at a time.
#include "cuop/dist/exec/pipeline.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "cuop/core/error.h"
#include "cuop/core/stream.h"
#include "cuop/core/text.h"
#include "tests/error_of.h"
#include "tests/gpu/gpu_test.h"

namespace cuop::dist {
namespace {

using test::error_of;
using ::testing::HasSubstr;

constexpr Overlap kTwoWays{.is_two_way = true};

class GpuPipeline : public GpuTest {};

void wait_until(const std::atomic<int>& count, int wanted) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (count < wanted && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_GE(count, wanted);
}

/// Neither of the two could end without the other having begun.
TEST_F(GpuPipeline, BringsWhileItTakesAway) {
  constexpr int kChunks = 5;
  std::atomic<int> brought = 0, worked = 0, taken = 0;
  Stream in, out;
  run_pipeline(kGpu, kChunks,
               {[&](int64_t chunk) {
                  in = current_stream(kGpu);
                  ++brought;
                  if (chunk > 1) wait_until(taken, static_cast<int>(chunk) - 1);
                },
                [&](int64_t chunk) {
                  EXPECT_GT(brought, chunk);
                  EXPECT_NE(current_stream(kGpu), in);
                  ++worked;
                },
                [&](int64_t chunk) {
                  out = current_stream(kGpu);
                  EXPECT_GT(worked, chunk);
                  ++taken;
                  if (chunk + 2 < kChunks) wait_until(brought, static_cast<int>(chunk) + 3);
                }},
               kTwoWays, {});
  EXPECT_EQ(taken, kChunks);
  EXPECT_NE(in, out);
}

TEST_F(GpuPipeline, ErrorsOfEitherWayReachTheCaller) {
  const auto nothing = [](int64_t) {};
  for (const int64_t failing : {0, 1, 3}) {
    const auto fails = [failing](int64_t chunk) {
      if (chunk == failing) throw ShapeError(cat("not chunk ", chunk));
    };
    std::atomic<int> inside = 0;  // what the stages use is there as long as they run
    const auto works = [&inside](int64_t) {
      ++inside;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      --inside;
    };
    const std::string text = cat("not chunk ", failing);
    const auto run = [&](const Stages& stages) {
      return error_of<ShapeError>([&] { run_pipeline(kGpu, 4, stages, kTwoWays, {}); });
    };
    EXPECT_THAT(run({fails, nothing, works}), HasSubstr(text));
    EXPECT_EQ(inside, 0);
    EXPECT_THAT(run({works, nothing, fails}), HasSubstr(text));
    EXPECT_EQ(inside, 0);
    EXPECT_THAT(run({works, fails, works}), HasSubstr(text));
  }
}

}  // namespace
}  // namespace cuop::dist
