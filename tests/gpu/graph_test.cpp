#include "cuop/backend/graph.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>

#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/core/error.h"
#include "cuop/memory/current.h"
#include "cuop/memory/pool.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/matmul/matmul.h"
#include "cuop/ops/reduce/reduce.h"
#include "tests/gpu/foreign_graph.h"
#include "tests/gpu/gpu_test.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

float first_of(const Tensor& t) { return to_device(t, kCpu).data<float>()[0]; }

class GpuGraph : public GpuTest {};

TEST_F(GpuGraph, ReplaysWhatWasRecorded) {
  const Tensor a = full({64, 64}, 1, DType::kFloat32, kGpu);
  const Tensor b = full({64, 64}, 2, DType::kFloat32, kGpu);
  matmul(a, b);  // the library is loaded and the plan made before the capture
  const auto graph = backend::runtime(kGpu).create_graph();
  graph->begin();
  const Tensor product = matmul(matmul(a, b), b);
  const Tensor copied = clone(product);
  graph->end();
  EXPECT_GE(graph->node_count(), 3);
  for (const int value : {1, 3, 5}) {
    fill(a, value);
    graph->replay(current_stream(kGpu));
    EXPECT_EQ(first_of(copied), static_cast<float>(value) * 128 * 128);
  }
}

TEST_F(GpuGraph, ItsMemoryStaysItsOwn) {
  const auto graph = backend::runtime(kGpu).create_graph();
  graph->begin();
  const Tensor recorded = full({1 << 16}, 7, DType::kFloat32, kGpu);
  graph->end();
  std::vector<Tensor> others;
  for (int i = 0; i < 50; ++i) others.push_back(full({1 << 16}, 1, DType::kFloat32, kGpu));
  graph->replay(current_stream(kGpu));
  EXPECT_EQ(first_of(recorded), 7);
  for (const Tensor& other : others) EXPECT_EQ(first_of(other), 1);
}

TEST_F(GpuGraph, ATensorOutlivesItsGraph) {
  memory::MemoryResource& resource = memory::current_resource(kGpu);
  const int64_t before = resource.statistics().allocated_bytes;
  Tensor kept;
  {
    const auto graph = backend::runtime(kGpu).create_graph();
    graph->begin();
    kept = full({1000}, 3, DType::kFloat32, kGpu);
    graph->end();
    graph->replay(current_stream(kGpu));
  }
  EXPECT_EQ(first_of(kept), 3);
  kept = Tensor();
  EXPECT_EQ(resource.statistics().allocated_bytes, before) << "the graph's memory went back";
}

TEST_F(GpuGraph, AMemoryCallbackDuringACaptureMayAskAndFree) {
  auto* pool = dynamic_cast<memory::Pool*>(&memory::current_resource(kGpu));
  if (pool == nullptr) GTEST_SKIP() << "the device's memory is no pool, which calls nobody";
  constexpr int64_t kMiB = int64_t{1} << 20;
  pool->release_cached();
  const memory::Statistics before = pool->statistics();
  pool->set_limit(before.reserved_bytes + 64 * kMiB);
  const std::shared_ptr<void> at_end(pool, [](void* used) {
    static_cast<memory::Pool*>(used)->set_callback({});
    static_cast<memory::Pool*>(used)->set_limit(memory::kUnlimited);
  });
  const auto graph = backend::runtime(kGpu).create_graph();
  Tensor unwanted;
  int64_t seen = 0;
  pool->set_callback(
      [&](const memory::MemoryEvent&) {
        seen = std::max(seen, memory::current_resource(kGpu).statistics().reserved_bytes);
        unwanted = Tensor();
      },
      {static_cast<double>(before.allocated_bytes + 12 * kMiB) /
       static_cast<double>(pool->capacity())});
  graph->begin();
  unwanted = empty({8 * kMiB}, DType::kUInt8, kGpu);
  const Tensor kept = full({2 * kMiB}, 3, DType::kFloat32, kGpu);  // crosses the threshold
  graph->end();
  EXPECT_GE(seen, 8 * kMiB) << "nobody was called";
  EXPECT_EQ(unwanted.storage(), nullptr);
  graph->replay(current_stream(kGpu));
  EXPECT_EQ(first_of(kept), 3);
}

TEST_F(GpuGraph, MarksOfStreamsReachTheMemoryBehindIt) {
  auto* pool = dynamic_cast<memory::Pool*>(&memory::current_resource(kGpu));
  if (pool == nullptr)
    GTEST_SKIP() << "the device's memory is no pool, which tells what is pending";
  constexpr int64_t kBytes = int64_t{64} << 20;
  const backend::OwnedStream side(kGpu);
  Tensor outside = empty({kBytes}, DType::kUInt8, kGpu);
  const Tensor busy = empty({kBytes}, DType::kUInt8, kGpu);
  const auto graph = backend::runtime(kGpu).create_graph();
  graph->begin();
  memory::record_stream(*outside.storage(), side.get());
  Tensor shared = full({1000}, 1, DType::kFloat32, kGpu);
  const void* const address = shared.data();
  memory::record_stream(*shared.storage(), side.get());
  shared = Tensor();
  const Tensor next = full({1000}, 2, DType::kFloat32, kGpu);
  graph->end();
  EXPECT_NE(next.data(), address) << "used again although another stream may use it";
  for (int i = 0; i < 40; ++i) {
    backend::runtime(kGpu).fill_bytes(busy.data(), i, kBytes, side.get());
  }
  const int64_t before = pool->statistics().pending_bytes;
  outside = Tensor();
  EXPECT_EQ(pool->statistics().pending_bytes - before, kBytes);
  backend::runtime(kGpu).synchronize();
}

TEST_F(GpuGraph, RowsThatBlocksShareAreCountedBeyondTheGraph) {
  const Tensor ones_row = full({1 << 20}, 1, DType::kFloat32, kGpu);
  sum(ones_row);  // loads the kernel
  // Graphs that end without a replay leave their stream's handle, and counters, to the next.
  for (int i = 0; i < 6; ++i) {
    const auto graph = backend::runtime(kGpu).create_graph();
    graph->begin();
    const Tensor total = sum(ones_row);
    graph->end();
    for (int replay = 0; replay < i % 3; ++replay) {
      graph->replay(current_stream(kGpu));
      EXPECT_EQ(first_of(total), static_cast<float>(1 << 20)) << "graph " << i;
    }
  }
}

TEST_F(GpuGraph, GraphsOfAnotherLibraryThatShareAStreamShareNoMemory) {
  const Shape shape{1 << 20};
  const Tensor ones_row = full(shape, 1, DType::kFloat32, kGpu),
               twos_row = full(shape, 2, DType::kFloat32, kGpu);
  sum(ones_row);  // loads the kernel
  const backend::OwnedStream recorded(kGpu), first(kGpu), second(kGpu);
  Tensor ones_sum, twos_sum;
  ForeignGraph ones_graph(recorded.get(), [&] { ones_sum = sum(add(ones_row, ones_row)); });
  ForeignGraph twos_graph(recorded.get(), [&] { twos_sum = sum(add(twos_row, twos_row)); });
  // Memory of the kind that the graphs took, and gave back when they were recorded.
  std::vector<Tensor> others;
  {
    const StreamScope scope(recorded.get());
    for (int i = 0; i < 8; ++i) others.push_back(full(shape, 7, DType::kFloat32, kGpu));
  }
  backend::runtime(kGpu).synchronize();
  for (int round = 0; round < 4; ++round) {
    ones_graph.launch(first.get());
    twos_graph.launch(second.get());
  }
  backend::runtime(kGpu).synchronize();
  EXPECT_EQ(first_of(ones_sum), 2.0F * (1 << 20));
  EXPECT_EQ(first_of(twos_sum), 4.0F * (1 << 20));
  for (const Tensor& other : others) EXPECT_EQ(first_of(max(other)), 7.0F);
}

TEST_F(GpuGraph, RefusesWhatCannotBeRecorded) {
  const Tensor gpu = zeros({8}, DType::kFloat32, kGpu);
  const auto graph = backend::runtime(kGpu).create_graph();
  EXPECT_THAT([&] { graph->replay(current_stream(kGpu)); },
              ThrowsMessage<ExecutionError>(HasSubstr("nothing was captured")));
  EXPECT_THAT([&] { graph->end(); }, ThrowsMessage<ExecutionError>(HasSubstr("no capture")));
  graph->begin();
  EXPECT_THAT([&] { graph->begin(); }, ThrowsMessage<ExecutionError>(HasSubstr("already")));
  EXPECT_THAT([&] { to_device(gpu, kCpu); },
              ThrowsMessage<ExecutionError>(HasSubstr("host memory takes part")));
  graph->abandon();
  EXPECT_EQ(first_of(gpu), 0) << "the device goes on after an abandoned capture";
  graph->begin();
  fill(gpu, 2);
  graph->end();
  EXPECT_EQ(first_of(gpu), 0) << "recording does not do the work";
  graph->replay(current_stream(kGpu));
  EXPECT_EQ(first_of(gpu), 2);
}

}  // namespace
}  // namespace cuop
