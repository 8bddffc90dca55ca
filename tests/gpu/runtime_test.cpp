#include "cuop/backend/runtime.h"

#include <gmock/gmock.h>

#include <thread>

#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/cuda_memory.h"
#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/cuda/cuda_upstream.h"
#include "cuop/backend/cuda/operation.h"
#include "cuop/backend/cuda/recent_operations.h"
#include "cuop/core/error.h"
#include "cuop/memory/current.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "tests/conformance/runtime_suite.h"
#include "tests/error_of.h"
#include "tests/gpu/gpu_test.h"

namespace cuop::backend::cuda {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

[[maybe_unused]] const bool kIsRegistered = [] {
  backend::conformance::register_runtime_suite("cuda", kGpu);
  return true;
}();

class GpuRuntime : public GpuTest {};

TEST_F(GpuRuntime, TellsWhatItIs) {
  const DeviceProperties& p = runtime(kGpu).properties();
  EXPECT_EQ(&p, &cuda_runtime(kGpu).properties());
  EXPECT_EQ(p.driver_version, driver().version);
  EXPECT_GE(p.major, 7);
  EXPECT_GT(p.multiprocessors, 0);
  EXPECT_EQ(p.warp_size, 32);
  EXPECT_GE(p.max_threads_per_block, 1024);
  EXPECT_GE(p.shared_per_block_optin, p.shared_per_block);
  EXPECT_GT(p.total_bytes, int64_t{1} << 30);
  EXPECT_EQ(p.uuid.size(), 40u);
  EXPECT_THAT(cuda_runtime(kGpu).description(), HasSubstr(p.name));
}

TEST_F(GpuRuntime, CopiesToLockedMemoryAsWorkOfTheStream) {
  constexpr int64_t kBytes = 100'003;
  Runtime& gpu = runtime(kGpu);
  const OwnedStream own(kGpu);
  const Stream stream = own.get();
  memory::MemoryResource& pinned = locked_memory(kGpu);
  ASSERT_EQ(&pinned, &pinned_memory(kGpu));
  const Tensor values = empty({kBytes}, DType::kUInt8, kGpu);
  auto* host = static_cast<unsigned char*>(pinned.allocate(kBytes, stream));
  gpu.synchronize();  // whoever had the memory before is done
  const auto is_there = gpu.create_event(false);
  for (const int round : {1, 2, 3}) {
    std::fill_n(host, kBytes, static_cast<unsigned char>(0));
    gpu.fill_bytes(values.data(), round, kBytes, stream);
    gpu.copy_locked(host, values.data(), kBytes - 1, stream);
    is_there->record(stream);
    is_there->synchronize();
    EXPECT_THAT(std::vector<int>(host, host + kBytes - 1), Each(round));
    EXPECT_EQ(host[kBytes - 1], 0);
  }
  gpu.copy_locked(nullptr, nullptr, 0, stream);
  pinned.deallocate(host, kBytes, stream);
}

TEST_F(GpuRuntime, ADeviceBeyondTheLastIsSaid) {
  const int count = device_count(DeviceType::kCuda);
  EXPECT_THAT(test::error_of<DeviceError>([&] {
                runtime(Device{DeviceType::kCuda, count});
              }),
              HasSubstr("is not available: the NVIDIA driver shows"));
}

TEST_F(GpuRuntime, AScopePutsTheContextOfOthersBack) {
  const Driver& d = driver();
  const ContextHandle own = primary_context(kGpu);
  std::thread([&] {
    ContextHandle seen = nullptr;
    check(d.ctx_set_current(own), "test");
    { const ContextScope scope(kGpu); }
    check(d.ctx_get_current(&seen), "test");
    EXPECT_EQ(seen, own);
  }).join();
}

TEST_F(GpuRuntime, ThreadsHaveStreamsOfTheirOwn) {
  const OwnedStream mine(kGpu);
  const StreamScope scope(mine.get());
  std::thread([] { EXPECT_EQ(current_stream(kGpu).handle, nullptr); }).join();
  EXPECT_EQ(current_stream(kGpu), mine.get());
}

TEST_F(GpuRuntime, WhatWasStartedIsRemembered) {
  const auto block = memory::allocate_storage(64, kGpu);
  runtime(kGpu).fill_bytes(block->data(), 0, 64, current_stream(kGpu));
  EXPECT_THAT(recently_started(), testing::StartsWith("fill"));
}

/// A kernel of the first GPU reads numbers of another, all 0x01010101.
void expect_read_by_first(void* data, int64_t count) {
  cuda_runtime({DeviceType::kCuda, 1}).synchronize();
  const Tensor there{std::make_shared<Storage>(data, 4 * count, kGpu, nullptr),
                     contiguous_layout({count}), DType::kInt32};
  const Tensor sum = to_device(add(there, 1), kCpu);
  EXPECT_EQ(sum.data<int32_t>()[0], 0x01010102);
  EXPECT_EQ(sum.data<int32_t>()[count - 1], 0x01010102);
}

TEST_F(GpuRuntime, PeersAreReachedWhereTheHardwareCan) {
  CudaRuntime& first = cuda_runtime(kGpu);
  EXPECT_TRUE(first.enable_peer_access(kGpu));
  if (device_count(DeviceType::kCuda) < 2) GTEST_SKIP() << "needs two CUDA GPUs";
  const Device other{DeviceType::kCuda, 1};
  const Tensor before = full({1000}, 0x01010101, DType::kInt32, other);
  const bool can = first.enable_peer_access(other);
  EXPECT_EQ(first.enable_peer_access(other), can) << "asking twice changed the answer";
  if (!can) GTEST_SKIP() << "these two do not reach each other";
  const int64_t count = before.size();
  const auto expect_readable = [&](void* data) {
    ASSERT_NE(data, nullptr);
    cuda_runtime(other).fill_bytes(data, 1, 4 * count, {other});
    expect_read_by_first(data, count);
  };
  PlainCudaUpstream plain(cuda_runtime(other));
  void* data = plain.acquire(4 * count);
  expect_readable(data);
  plain.release(data, 4 * count);
  data = direct_memory(other).allocate(4 * count, {other});
  expect_readable(data);
  direct_memory(other).deallocate(data, 4 * count, {other});
  // What was there, and what is mapped afterwards.
  expect_read_by_first(before.data(), count);
  const int64_t large = 1 << 20;
  const Tensor after = full({large}, 0x01010101, DType::kInt32, other);
  expect_read_by_first(after.data(), large);
}

}  // namespace
}  // namespace cuop::backend::cuda
