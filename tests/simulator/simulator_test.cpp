// What the simulated GPU finds: kernels with one mistake each, which end the launch by name. An
// error ends the device's use, so each is made in a process of its own.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/jit/compile_service.h"
#include "cuop/operators/tuned/user_kernel.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "tests/ordered_faults.h"
#include "tests/own_cache.h"

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

constexpr const char* kPieces = R"(
extern "C" __global__ void pieces(const int* x, int* y) {
  long long* wholes = reinterpret_cast<long long*>(y + blockIdx.x * 256);
  char* bytes = reinterpret_cast<char*>(wholes);
  if (threadIdx.x < 32) wholes[threadIdx.x] = x[threadIdx.x];
  FIRST;
  bytes[threadIdx.x] = 1;
  SECOND;
  if (threadIdx.x < 32) wholes[threadIdx.x] += 1;
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

TEST_F(Simulator, BytesAreToldFromTheNumbersAroundThem) {
  const std::string wait = "__syncthreads()";
  EXPECT_FINDS(run(kPieces, "pieces", {{"FIRST", wait}, {"SECOND", wait}}), "nothing was found");
  EXPECT_FINDS(run(kPieces, "pieces", {{"FIRST", ""}, {"SECOND", wait}}), "writes what thread");
  EXPECT_FINDS(run(kPieces, "pieces", {{"FIRST", wait}, {"SECOND", ""}}),
               "(reads|writes) what thread");
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

/// Sums on the GPU until something goes wrong, whose text is on stderr; then, without orders, once
/// more.
[[noreturn]] void run_into(const char* faults) {
  backend::runtime(kGpu).synchronize();
  if (!test::order_faults(faults)) std::fputs("no such fault\n", stderr);
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      const Tensor x = full({3, 1 << 20}, 2.0, DType::kFloat64, kGpu);
      const Tensor y = to_device(to_device(x, kCpu), kGpu);
      backend::runtime(kGpu).synchronize();
      std::fprintf(stderr, "; attempt %d went well", attempt);
    } catch (const Error& error) {
      std::fputs(error.what(), stderr);
    }
    test::order_faults("");
  }
  std::_Exit(0);
}

TEST_F(Simulator, AnErrorOfACallIsOverWithIt) {
  const std::string well = ".*attempt 1 went well";
  EXPECT_FINDS(run_into("alloc:1+:2"), "memory: 25165824 bytes were asked of cuda:0" + well);
  EXPECT_FINDS(run_into("fill:1:1"), "fill: .*CUDA_ERROR_INVALID_VALUE" + well);
  EXPECT_FINDS(run_into("copy:2:801"), "copy: .*CUDA_ERROR_NOT_SUPPORTED" + well);
  EXPECT_FINDS(run_into("wait:1:999"), "CUDA_ERROR_UNKNOWN" + well);
}

TEST_F(Simulator, AnErrorOfRunningWorkEndsTheUseOfItsDevice) {
  for (const char* fault : {"fill:1:700", "copy:1:700", "wait:2:700", "any:2:700"}) {
    EXPECT_FINDS(run_into(fault), "ILLEGAL_ADDRESS.*ILLEGAL_ADDRESS") << fault;
    EXPECT_EXIT(run_into(fault), testing::ExitedWithCode(0), "^[^;]*;[^;]*;[^;]*$") << fault;
  }
}

TEST_F(Simulator, FaultsOfAnotherDeviceOrBeyondAreNotHit) {
  const std::string both = "^; attempt 0 went well; attempt 1 went well$";
  EXPECT_FINDS(run_into("any:1+:700:1"), both);
  EXPECT_FINDS(run_into("any:100:700,wait:1+:2:1"), both);
}

TEST_F(Simulator, OrdersThatMakeNoSenseAreRefused) {
  for (const char* text : {"launch", "launch:0:700", "launch:1:0", "launch:x:700", "jump:1:700",
                           "launch:1:700:99", "launch:1:die", "launch:-1:700"}) {
    EXPECT_FINDS(run_into(text), "no such fault") << text;
  }
  setenv("SIM_FAULTS", "launch:1", 1);
  EXPECT_EXIT(run_into(""), testing::KilledBySignal(SIGABRT), "SIM_FAULTS=launch:1 is no row");
  unsetenv("SIM_FAULTS");
}

TEST_F(Simulator, AProcessIsKilledWhenItsWorkHasBegun) {
  EXPECT_EXIT(run_into("fill:1:kill"), testing::KilledBySignal(SIGKILL), "");
  setenv("SIM_FAULTS", "copy:2:kill:0", 1);
  EXPECT_EXIT(run_into("any:100:2"), testing::KilledBySignal(SIGKILL), "");
  EXPECT_FINDS(run_into(""), "went well");  // which withdraws them
  unsetenv("SIM_FAULTS");
}

/// Takes the compiler long, which has not seen it before.
jit::CompileRequest long_request() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  std::string source = cat("// ", now, "\nextern \"C\" __global__ void cuop_kernel(float* x) {\n");
  for (int i = 0; i < 300; ++i) source += cat("  x[", i, "] = x[", i + 1, "] + ", i, ".0f;\n");
  return {"late", source + "}", "sm_90a"};
}

/// The stand-in for the compiler cannot be asked to stop, as versions of the real one.
TEST(SimulatedCompiler, WhatItMakesWhenItsCallerHasLeftIsKept) {
  const test::OwnCache cache;
  const jit::CompileRequest request = long_request();
  jit::CompileSettings settings = jit::compile_settings();
  const int64_t before = jit::compile_statistics().compilations;
  settings.timeout = 0.001;
  jit::set_compile_settings(settings);
  EXPECT_THROW(jit::compile_kernel(request), CompilationError);
  std::optional<jit::CompiledKernel> late;
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (!late && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    late = jit::find_compiled(request);
  }
  ASSERT_TRUE(late) << "it was thrown away";
  settings.timeout = 300.0;
  jit::set_compile_settings(settings);
  EXPECT_EQ(jit::compile_kernel(request).image, late->image);
  EXPECT_EQ(jit::compile_statistics().compilations, before + 1) << "it is compiled once";
  ASSERT_EQ(jit::kernel_disk_cache()->entries().size(), 1U);
  EXPECT_EQ(jit::kernel_disk_cache()->entries()[0].name, "late sm_90a");
}

}  // namespace
}  // namespace cuop
