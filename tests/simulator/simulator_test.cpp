// What the simulated GPU finds: kernels with one mistake each, which end the launch by name. An
// error ends the device's use, so each is made in a process of its own.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <span>
#include <string>

#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/operators/tuned/user_kernel.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"

namespace cuop {
namespace {

constexpr Device kGpu{DeviceType::kCuda, 0};
constexpr int64_t kThreads = 256, kBlocks = 3;

constexpr const char* kTurned = R"(
extern "C" __global__ void turned(const int* x, int* y) {
  __shared__ int row[256];
  row[threadIdx.x] = x[threadIdx.x];
  BARRIER;
  y[blockIdx.x * 256 + threadIdx.x] = row[255 - threadIdx.x];
})";

constexpr const char* kTakenAgain = R"(
extern "C" __global__ void taken_again(const int* x, int* y) {
  __shared__ int row[256];
  int sum = 0;
  for (int i = 0; i < 2; ++i) {
    row[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    sum += row[255 - threadIdx.x];
    BARRIER;
  }
  y[blockIdx.x * 256 + threadIdx.x] = sum;
})";

constexpr const char* kWarps = R"(
extern "C" __global__ void warps(const int* x, int* y) {
  __shared__ int row[256];
  row[threadIdx.x] = x[threadIdx.x];
  BARRIER;
  y[blockIdx.x * 256 + threadIdx.x] = row[threadIdx.x ^ 1];
})";

constexpr const char* kLastSums = R"(
extern "C" __global__ void last_sums(const int* x, int* y, unsigned* arrivals) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    y[blockIdx.x] = x[0];
    FENCE;
    is_last = COUNT == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last && threadIdx.x == 0) {
    int sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += y[i];
    y[0] = sum;
  }
})";

constexpr const char* kBeyond = R"(
extern "C" __global__ void beyond(const int* x, int* y) {
  if (threadIdx.x == 0 && blockIdx.x == 0) y[PLACE] = x[0];
})";

/// Runs the kernel on 256 numbers, as many results for each of three blocks and counters, as far as
/// it takes them, and ends the process with what became of it on stderr.
[[noreturn]] void run(const char* source, const char* name,
                      std::map<std::string, std::string> macros) {
  try {
    UserKernel kernel(source, name, {.configs = {{std::move(macros)}}});
    const KernelArgument all[] = {arange(0, kThreads, 1, DType::kInt32, kGpu),
                                  zeros({kBlocks * kThreads}, DType::kInt32, kGpu),
                                  zeros({1}, DType::kUInt32, kGpu)};
    const auto taken = std::span(all).first(kernel.parameters().size());
    kernel.launch(taken, [](size_t) {
      return KernelLaunch{.grid = {kBlocks, 1, 1}, .block = {kThreads, 1, 1}};
    });
    backend::runtime(kGpu).synchronize();
    std::fputs("nothing was found", stderr);
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
  }
  std::_Exit(0);
}

#define EXPECT_FINDS(call, what) EXPECT_EXIT(call, testing::ExitedWithCode(0), what)

class Simulator : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(Simulator, ABlockThatDoesNotWaitIsFound) {
  EXPECT_FINDS(run(kTurned, "turned", {{"BARRIER", "__syncthreads()"}}), "nothing was found");
  EXPECT_FINDS(run(kTurned, "turned", {{"BARRIER", ""}}),
               "turned: thread .* of block .*(reads what|writes what) thread .* (wrote|read)");
  EXPECT_FINDS(run(kTakenAgain, "taken_again", {{"BARRIER", "__syncthreads()"}}),
               "nothing was found");
  EXPECT_FINDS(run(kTakenAgain, "taken_again", {{"BARRIER", ""}}),
               "taken_again: .*(reads what|writes what) threads? .*(wrote|read)");
}

TEST_F(Simulator, AWarpThatOnlyExchangesValuesIsFound) {
  EXPECT_FINDS(run(kWarps, "warps", {{"BARRIER", "__syncwarp()"}}), "nothing was found");
  EXPECT_FINDS(run(kWarps, "warps", {{"BARRIER", "__any_sync(0xffffffffu, 1)"}}), "reads what");
}

TEST_F(Simulator, BlocksThatShareMemoryNeedAFenceAndACounter) {
  const std::string fence = "__threadfence()", count = "atomicAdd(arrivals, 1u)";
  EXPECT_FINDS(run(kLastSums, "last_sums", {{"FENCE", fence}, {"COUNT", count}}),
               "nothing was found");
  EXPECT_FINDS(run(kLastSums, "last_sums", {{"FENCE", ""}, {"COUNT", count}}), "reads what");
  EXPECT_FINDS(run(kLastSums, "last_sums", {{"FENCE", fence}, {"COUNT", "blockIdx.x"}}),
               "reads what");
  EXPECT_FINDS(run(kLastSums, "last_sums", {{"FENCE", fence}, {"COUNT", "(*arrivals)++"}}),
               "(reads|writes) what");
}

TEST_F(Simulator, TheFirstByteBehindABlockIsNotThere) {
  EXPECT_FINDS(run(kBeyond, "beyond", {{"PLACE", "767"}}), "nothing was found");
  EXPECT_FINDS(run(kBeyond, "beyond", {{"PLACE", "768"}}), "beyond: thread 0 .* writes 4 bytes");
  EXPECT_FINDS(run(kBeyond, "beyond", {{"PLACE", "-1"}}), "beyond: thread 0 .* writes 4 bytes");
}

}  // namespace
}  // namespace cuop
