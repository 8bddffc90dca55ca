// Two GPUs of one process.
#include <gmock/gmock.h>

#include <thread>

#include "cuop/backend/cuda/context.h"
#include "cuop/ops/matmul/matmul.h"
#include "tests/gpu/gpu_values.h"

namespace cuop {
namespace {

constexpr Device kSecond{DeviceType::kCuda, 1};

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

TEST_F(GpuPeers, TheyDoNotMixInOneOperation) {
  EXPECT_THROW(
      matmul(zeros({2, 2}, DType::kFloat32, kGpu), zeros({2, 2}, DType::kFloat32, kSecond)),
      DeviceError);
}

}  // namespace
}  // namespace cuop
