// The memory pool over real memory and streams of a GPU. POOL_FUZZ_OPERATIONS sets the length of
// the random programs.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "cuop/backend/cuda/cuda_memory.h"
#include "cuop/backend/cuda/cuda_upstream.h"
#include "cuop/backend/memory_debugging.h"
#include "cuop/core/error.h"
#include "cuop/jit/cuda/arrivals.h"
#include "cuop/memory/current.h"
#include "cuop/memory/pool.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "tests/error_of.h"
#include "tests/gpu/gpu_test.h"

namespace cuop {
namespace {

using memory::Pool;
using ::testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

class GpuPool : public GpuTest {
 protected:
  static int64_t free_bytes() { return backend::runtime(kGpu).memory_info().free; }
  static void expect_usable() {
    const Tensor tensor = full({1000}, 3.0, DType::kFloat32, kGpu);
    const Tensor host = to_device(tensor, kCpu);
    EXPECT_EQ(static_cast<const float*>(host.data())[999], 3.0F);
  }

  /// Random programs on three streams; what is written into a block must be there when it is freed.
  void fuzz(memory::Upstream& upstream) {
    backend::cuda::CudaRuntime& runtime = backend::cuda::cuda_runtime(kGpu);
    const int64_t before = free_bytes();
    {
      backend::cuda::CudaOrder order(runtime);
      memory::MemoryPoolOptions options;
      options.quantum = 512;
      options.limit_bytes = 512 * kMiB;
      options.cache_bytes = 256 * kMiB;
      Pool pool(upstream, order, options);
      const backend::OwnedStream a(kGpu), b(kGpu);
      const Stream streams[] = {a.get(), b.get(), Stream{kGpu}};
      struct Live {
        unsigned char* data;
        int64_t bytes;
        Stream stream;
        int mark;
      };
      std::vector<Live> live;
      std::mt19937 random(5);
      int64_t refused = 0, wrong = 0;
      const char* text = std::getenv("POOL_FUZZ_OPERATIONS");
      const int64_t count = text == nullptr ? 20'000 : std::atoll(text);
      const auto free_one = [&](bool checks) {
        std::swap(live[random() % live.size()], live.back());
        const Live block = live.back();
        live.pop_back();
        if (checks) {
          unsigned char ends[2];
          runtime.copy(&ends[0], block.data, 1, block.stream);
          runtime.copy(&ends[1], block.data + block.bytes - 1, 1, block.stream);
          wrong += ends[0] != block.mark || ends[1] != block.mark;
        }
        pool.deallocate(block.data, block.bytes, block.stream);
      };
      for (int64_t i = 0; i < count; ++i) {
        const bool grows = (i / 5000) % 2 == 0;
        if (!live.empty() && random() % 100 >= (grows ? 60u : 40u)) {
          free_one(random() % 256 == 0);
          continue;
        }
        const int64_t bytes = random() % 20 == 0 ? 1 + static_cast<int64_t>(random() % (72 * kMiB))
                                                 : 1 + static_cast<int64_t>(random() % 50'000);
        const Stream on = streams[random() % 3];
        try {
          auto* data = static_cast<unsigned char*>(pool.allocate(bytes, on));
          const int mark = static_cast<int>(random() % 256);
          const bool writes = random() % 8 == 0;
          if (writes) runtime.fill_bytes(data, mark, bytes, on);
          if (writes && random() % 4 == 0) {
            const Stream other = streams[random() % 3];
            runtime.order(other, on);
            pool.record_stream(data, other);
          }
          if (writes) {
            live.push_back({data, bytes, on, mark});
          } else {
            pool.deallocate(data, bytes, on);
          }
        } catch (const MemoryError&) {
          ++refused;
          while (live.size() > 10) free_one(false);
        }
      }
      while (!live.empty()) free_one(true);
      EXPECT_EQ(wrong, 0) << "somebody else wrote into a live block";
      pool.release_cached();
      pool.release_cached();
      const memory::Statistics s = pool.statistics();
      EXPECT_EQ(s.allocated_bytes, 0);
      EXPECT_EQ(s.pending_bytes, 0);
      EXPECT_EQ(s.reserved_bytes, 0);
      EXPECT_EQ(s.allocation_count, s.free_count);
      EXPECT_GE(s.allocation_count, count / 3);
      RecordProperty("allocations", std::to_string(s.allocation_count));
      RecordProperty("refused", std::to_string(refused));
      RecordProperty("maps", std::to_string(s.map_count));
    }
    EXPECT_GE(free_bytes(), before - 64 * kMiB) << "memory of the device leaked";
  }
};

TEST_F(GpuPool, SurvivesRandomProgramsOverMappedMemory) {
  backend::cuda::CudaRuntime& runtime = backend::cuda::cuda_runtime(kGpu);
  if (!runtime.properties().has_virtual_memory) GTEST_SKIP() << "needs a GPU that maps memory";
  backend::cuda::MappedCudaUpstream upstream(runtime);
  fuzz(upstream);
}

TEST_F(GpuPool, SurvivesRandomProgramsOverPlainMemory) {
  backend::cuda::PlainCudaUpstream upstream(backend::cuda::cuda_runtime(kGpu));
  fuzz(upstream);
}

TEST_F(GpuPool, TheDriversPoolKeepsABlockUntilMarkedStreamsAreDone) {
  backend::cuda::CudaRuntime& runtime = backend::cuda::cuda_runtime(kGpu);
  memory::MemoryResource& drivers = backend::cuda::direct_memory(kGpu);
  const backend::OwnedStream own(kGpu), side(kGpu);
  constexpr int64_t kBytes = 64 * kMiB;
  const Tensor busy = empty({kBytes}, DType::kUInt8, kGpu),
               seen = zeros({kBytes}, DType::kUInt8, kGpu);
  runtime.order(side.get(), Stream{kGpu});
  const int64_t before = drivers.statistics().allocated_bytes;
  void* block = drivers.allocate(kBytes, own.get());
  runtime.fill_bytes(block, 1, kBytes, own.get());
  runtime.order(side.get(), own.get());
  for (int i = 0; i < 40; ++i) runtime.fill_bytes(busy.data(), i, kBytes, side.get());
  runtime.copy(seen.data(), block, kBytes, side.get());
  drivers.record_stream(block, side.get());
  drivers.record_stream(busy.data(), side.get());  // not one of its blocks
  drivers.deallocate(block, kBytes, own.get());
  std::vector<void*> next;
  for (int i = 0; i < 3; ++i) {
    next.push_back(drivers.allocate(kBytes, own.get()));
    runtime.fill_bytes(next.back(), 2, kBytes, own.get());
  }
  runtime.synchronize();
  const Tensor host = to_device(seen, kCpu);
  const auto* first = host.data<uint8_t>();
  EXPECT_EQ(std::count(first, first + kBytes, 1), kBytes) << "given away while it was read";
  for (void* data : next) drivers.deallocate(data, kBytes, own.get());
  EXPECT_EQ(drivers.statistics().allocated_bytes, before);
  drivers.release_cached();
}

TEST_F(GpuPool, DebuggingFindsWritesOutsideAndIntoFreedMemory) {
  backend::Runtime& runtime = backend::runtime(kGpu);
  backend::set_memory_debugging(kGpu, true);
  const std::shared_ptr<void> at_end(&runtime,
                                     [](void*) { backend::set_memory_debugging(kGpu, false); });
  const size_t before = backend::check_memory(kGpu).size();
  const Tensor small = empty({100}, DType::kUInt8, kGpu);
  Tensor large = empty({5 * kMiB}, DType::kUInt8, kGpu);
  auto* const behind = static_cast<std::byte*>(small.data()) + small.nbytes();
  auto* const first = static_cast<std::byte*>(large.data());
  EXPECT_EQ(backend::check_memory(kGpu).size(), before) << "nothing was wrong so far";
  runtime.fill_bytes(behind + 7, 1, 1, {kGpu});
  large = Tensor();
  runtime.fill_bytes(first + 3 * kMiB + 17, 1, 1, {kGpu});
  const std::vector<std::string> found = backend::check_memory(kGpu);
  ASSERT_EQ(found.size(), before + 2);
  EXPECT_THAT(found[before], HasSubstr("behind a block, 7 bytes after its end: 100 B"));
  EXPECT_THAT(found[before + 1], HasSubstr("into a freed block at byte 3145745: 5 MiB"));
}

TEST_F(GpuPool, ServesTensorsAligned) {
  memory::MemoryResource& resource = memory::current_resource(kGpu);
  for (const int64_t bytes : {int64_t{1}, int64_t{1000}, 3 * kMiB}) {
    void* data = resource.allocate(bytes, {kGpu});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 512, 0u);
    resource.deallocate(data, bytes, {kGpu});
  }
  expect_usable();
}

TEST_F(GpuPool, RefusesWhatTheDeviceDoesNotHaveAndGoesOn) {
  const auto error = test::caught<MemoryError>(
      [] { empty({int64_t{200} << 28}, DType::kFloat32, kGpu); });  // 200 GB
  EXPECT_EQ(error.figures().requested, int64_t{200} << 30);
  EXPECT_THAT(error.what(), HasSubstr("bytes were asked of cuda:0 (200 GiB)"));
  EXPECT_THAT(error.what(), HasSubstr("fragmentation"));
  EXPECT_THAT(error.what(), HasSubstr("other processes and libraries hold"));
  expect_usable();
}

TEST_F(GpuPool, ALimitOfOneGigabyteHoldsAndTheProgramGoesOn) {
  Pool& pool = memory::device_pool(kGpu);
  pool.release_cached();
  pool.set_limit(kGiB);
  const std::shared_ptr<void> at_end(
      &pool, [](void* limited) { static_cast<Pool*>(limited)->set_limit(memory::kUnlimited); });
  {
    const Tensor half = empty({512 * kMiB}, DType::kUInt8, kGpu);
    EXPECT_THROW(empty({700 * kMiB}, DType::kUInt8, kGpu), MemoryError);
    expect_usable();
    EXPECT_LE(pool.statistics().reserved_bytes, kGiB);
  }
  // What tests before this one left is small, but keeps a granule or two.
  const Tensor most = empty({900 * kMiB}, DType::kUInt8, kGpu);
  EXPECT_LE(pool.statistics().reserved_bytes, kGiB);
}

TEST_F(GpuPool, ANeighbourThatHoldsMostOfTheDeviceIsNamed) {
  backend::cuda::PlainCudaUpstream neighbour(backend::cuda::cuda_runtime(kGpu));
  memory::device_pool(kGpu).release_cached();
  const int64_t held = (free_bytes() - kGiB) / (2 * kMiB) * (2 * kMiB);
  void* block = neighbour.acquire(held);
  ASSERT_NE(block, nullptr);
  EXPECT_THAT(test::error_of<MemoryError>([] { empty({2 * kGiB}, DType::kUInt8, kGpu); }),
              HasSubstr("other processes and libraries hold"));
  expect_usable();
  neighbour.release(block, held);
  const Tensor now = empty({2 * kGiB}, DType::kUInt8, kGpu);
  EXPECT_NE(now.data(), nullptr);
}

TEST_F(GpuPool, ACallbackMayComputeWhileTheCountersOfItsStreamAreMade) {
  Pool& pool = memory::device_pool(kGpu);
  const memory::Statistics before = pool.statistics();
  constexpr int64_t kBytes = jit::Arrivals::kKept * static_cast<int64_t>(sizeof(unsigned));
  std::vector<std::unique_ptr<backend::OwnedStream>> streams;
  unsigned *inner = nullptr, *outer = nullptr;
  pool.set_callback(
      [&](const memory::MemoryEvent&) {
        if (inner == nullptr) inner = jit::Arrivals(16, streams.back()->get()).data();
      },
      {static_cast<double>(before.allocated_bytes + kBytes / 2) /
       static_cast<double>(before.capacity_bytes)});
  // A stream of an earlier test has its counters already.
  for (int i = 0; i < 64 && inner == nullptr; ++i) {
    streams.push_back(std::make_unique<backend::OwnedStream>(kGpu));
    outer = jit::Arrivals(16, streams.back()->get()).data();
  }
  pool.set_callback({});
  ASSERT_NE(inner, nullptr) << "the callback was never called";
  EXPECT_EQ(outer, inner);
  EXPECT_EQ(pool.statistics().allocated_bytes, before.allocated_bytes + kBytes);
  std::vector<unsigned> counters(jit::Arrivals::kKept, 1);
  backend::runtime(kGpu).copy(counters.data(), outer, kBytes, streams.back()->get());
  backend::runtime(kGpu).synchronize(streams.back()->get());
  EXPECT_EQ(counters, std::vector<unsigned>(jit::Arrivals::kKept, 0));
}

TEST_F(GpuPool, PinnedMemoryServesCopies) {
  memory::MemoryResource& pinned = backend::cuda::pinned_memory(kGpu);
  backend::Runtime& runtime = backend::runtime(kGpu);
  auto* host = static_cast<unsigned char*>(pinned.allocate(kMiB, {kGpu}));
  void* device = memory::current_resource(kGpu).allocate(kMiB, {kGpu});
  runtime.fill_bytes(device, 9, kMiB, {kGpu});
  runtime.copy(host, device, kMiB, {kGpu});
  EXPECT_EQ(host[0], 9);
  EXPECT_EQ(host[kMiB - 1], 9);
  memory::current_resource(kGpu).deallocate(device, kMiB, {kGpu});
  pinned.deallocate(host, kMiB, {kGpu});
  EXPECT_EQ(pinned.statistics().allocated_bytes, 0);
  pinned.release_cached();
  EXPECT_EQ(pinned.statistics().reserved_bytes, 0);
}

}  // namespace
}  // namespace cuop
