// Two GPUs of one process.
#include <gmock/gmock.h>

#include <thread>

#include "cuop/backend/cuda/context.h"
#include "cuop/jit/fusion.h"
#include "cuop/memory/current.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/fft/fft.h"
#include "cuop/ops/matmul/matmul.h"
#include "tests/gpu/gpu_values.h"

namespace cuop {
namespace {

constexpr Device kSecond{DeviceType::kCuda, 1};

using test::expect_same;

class GpuPeers : public GpuTest {
 protected:
  void SetUp() override {
    if (backend::device_count(DeviceType::kCuda) < 2) GTEST_SKIP() << "needs two CUDA GPUs";
  }
};

TEST_F(GpuPeers, TensorsMoveFromOneToTheOther) {
  const Tensor host = random_values({1031, 77}, 1, DType::kFloat32);
  for (const bool has_streams : {false, true}) {
    std::optional<backend::OwnedStream> first, second;
    std::optional<StreamScope> on_first, on_second;
    if (has_streams) {
      on_first.emplace(first.emplace(kGpu).get());
      on_second.emplace(second.emplace(kSecond).get());
    }
    for (int round = 0; round < 10; ++round) {
      const Tensor filled = full({1 << 20}, round, DType::kInt32, kGpu);
      const Tensor moved = to_device(filled, kSecond);
      EXPECT_EQ(moved.device(), kSecond);
      EXPECT_EQ(to_device(moved, kCpu).data<int32_t>()[(1 << 20) - 1], round);
    }
    const Tensor there = to_device(to_device(to_device(host, kGpu), kSecond), kGpu);
    EXPECT_EQ(host_values(there), host_values(host));
  }
}

TEST_F(GpuPeers, WhatIsRecordedForFusionRunsBeforeItIsCopied) {
  for (int round = 0; round < 10; ++round) {
    const Tensor x = full({1 << 20}, round, DType::kInt32, kGpu);
    Tensor moved;
    {
      Fused scope;
      moved = to_device(add(x, 1), kSecond);
    }
    EXPECT_EQ(to_device(moved, kCpu).data<int32_t>()[(1 << 20) - 1], round + 1);
  }
}

TEST_F(GpuPeers, EachComputesAndLeavesTheThreadWhereItWas) {
  const Tensor a = random_values({64, 64}, 2, DType::kFloat64);
  const auto expected = host_values(matmul(a, a));
  const backend::cuda::ContextScope scope(kGpu);
  for (const Device device : {kSecond, kGpu, kSecond}) {
    const Tensor there = to_device(a, device);
    const Tensor product = matmul(there, there);
    EXPECT_EQ(product.device(), device);
    const auto got = host_values(product);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i].real(), expected[i].real(), 1e-12);
    backend::cuda::ContextHandle current = nullptr;
    backend::cuda::check(backend::cuda::driver().ctx_get_current(&current), "test");
    EXPECT_EQ(current, backend::cuda::primary_context(kGpu));
  }
}

TEST_F(GpuPeers, StreamsOfOneWaitForThoseOfTheOther) {
  constexpr int64_t kCount = 1 << 20;
  const backend::OwnedStream first(kGpu), second(kSecond);
  const StreamScope on_first(first.get()), on_second(second.get());
  const Tensor from = empty({kCount}, DType::kUInt8, kGpu);
  const Tensor to = empty({kCount}, DType::kUInt8, kSecond);
  backend::Runtime &here = backend::runtime(kGpu), &there = backend::runtime(kSecond);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 10; ++i) here.fill_bytes(from.data(), round, kCount, first.get());
    there.order(second.get(), first.get());
    there.copy(to.data(), from.data(), kCount, second.get());
    here.order(first.get(), second.get());
    here.fill_bytes(from.data(), 255, kCount, first.get());
    const Tensor host = to_device(to, kCpu);
    EXPECT_EQ(host.data<uint8_t>()[0], round);
    EXPECT_EQ(host.data<uint8_t>()[kCount - 1], round);
  }
}

TEST_F(GpuPeers, EachHasMemoryOfItsOwnThatAnyThreadGivesBack) {
  const auto live = [](Device device) {
    return memory::current_resource(device).statistics().allocated_bytes;
  };
  const int64_t on_first = live(kGpu), on_second = live(kSecond);
  Tensor tensor = zeros({1 << 20}, DType::kUInt8, kSecond);
  EXPECT_EQ(live(kGpu), on_first);
  EXPECT_EQ(live(kSecond), on_second + (1 << 20));
  std::thread([&] { tensor = Tensor(); }).join();
  EXPECT_EQ(live(kSecond), on_second);
}

TEST_F(GpuPeers, TheyDoNotMixInOneOperation) {
  EXPECT_THROW(
      matmul(zeros({2, 2}, DType::kFloat32, kGpu), zeros({2, 2}, DType::kFloat32, kSecond)),
      DeviceError);
}

TEST_F(GpuPeers, PlansOfOneGpuMayLeaveTheCacheWhileTheyRunThere) {
  constexpr int64_t kSize = 1 << 16;
  const Tensor x = random_values({kSize}, 2, DType::kComplex64), other = gpu(x);
  const Tensor there = to_device(x, kSecond);
  const Tensor twice = fft(fft(there));
  for (int64_t n = 1; n < 100; ++n) fft(other, n);
  expect_same(twice, fft(fft(x)), 64, "twice", static_cast<double>(kSize));
}

}  // namespace
}  // namespace cuop
