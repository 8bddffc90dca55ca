// Arrays of the host in tiles on several GPUs of one process, which share what they read.
#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <optional>

#include "cuop/backend/runtime.h"
#include "cuop/core/env.h"
#include "cuop/dist/comm/self.h"
#include "cuop/executor/operations.h"
#include "cuop/executor/thread_boxes.h"
#include "cuop/ops/conv/conv.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/matmul/matmul.h"
#include "tests/current_device_scope.h"
#include "tests/executor/tiled_test.h"
#include "tests/gpu/ranks/held_stream.h"

namespace cuop::executor {
namespace {

using namespace dist::rank_test;    // NOLINT: the frame of these tests
using namespace executor::testing;  // NOLINT

constexpr int64_t kMiB = int64_t{1} << 20;

class GpuSharedTiles : public ::testing::Test {
 protected:
  void SetUp() override {
    if (backend::device_count(DeviceType::kCuda) < 2) GTEST_SKIP() << "needs two CUDA GPUs";
  }
};

/// GPUs of which each reads the others' memory much faster than the host's.
TileMachine linked(int64_t memory) {
  TileMachine machine;
  machine.devices = backend::device_count(DeviceType::kCuda);
  machine.memory = memory;
  machine.upload = machine.download = 1e8;
  machine.between = 1e11;
  machine.figures = work_figures({DeviceType::kCuda, 0});
  return machine;
}

/// One run on all GPUs of the process, of which several read the second input. Returns the bytes
/// that they took from each other.
int64_t shared_by_run(const TileOperation& operation, const std::vector<Tensor>& inputs,
                      const Tensor& expected, int64_t bytes, double tolerance) {
  TiledOptions options = within(bytes);
  if (env().peer_mapping.value) options.machine = linked(bytes);
  const Tensor result = run_tiled(dist::make_self_communicator(), operation, inputs, options);
  const TiledReport& report = *options.report;
  expect_close(result, expected, tolerance, operation.text);
  EXPECT_EQ(report.plan.shared > 0, env().peer_mapping.value) << report.plan.explain();
  EXPECT_LE(report.peak, bytes);
  EXPECT_EQ(report.halvings, 0);
  return report.shared;
}

/// GPUs share what they read at the same time, and nothing with CUOP_PEER_MAPPING=0. One whose
/// thread the host lets run only when the other has read all brings all itself, so that a run may
/// share nothing; not ten of them.
void expect_shared(const TileOperation& operation, const std::vector<Tensor>& inputs,
                   const Tensor& expected, int64_t bytes, double tolerance) {
  int64_t shared = 0;
  for (int run = 0; run < 10 && shared == 0 && !::testing::Test::HasFailure(); ++run) {
    shared = shared_by_run(operation, inputs, expected, bytes, tolerance);
  }
  EXPECT_EQ(shared > 0, env().peer_mapping.value) << operation.text << " within " << bytes;
}

TEST_F(GpuSharedTiles, AProductsOperandsComeOnce) {
  const Tensor a = host_noise({700, 1100}), b = host_noise({1100, 500}, DType::kFloat64, 2);
  const Tensor expected = cuop::matmul(a, b);
  for (const int64_t bytes : {12 * kMiB, 64 * kMiB}) {
    expect_shared(matmul_tiles(), {a, b}, expected, bytes, 1e-11);
  }
}

TEST_F(GpuSharedTiles, OperandsOfAConvolutionComeOnce) {
  const Tensor x = host_noise({130, 4100, 1, 1}), w = host_noise({128, 4100, 1, 1});
  const ConvOptions options;
  expect_shared(conv_tiles(options), {x, w}, cuop::conv2d(x, w, nullptr, options), 64 * kMiB,
                1e-10);
}

// Uploads of page-locked memory are ordered at once, long before they begin.
TEST_F(GpuSharedTiles, AGpuWhoseUploadsAreUnderWayLeavesOthersTheirTurn) {
  ThreadBoxes boxes;
  const Box box{{0, 0}, {512, 2048}};
  struct Read {
    int pieces = 0;  ///< that the GPU brought itself
    std::shared_ptr<SharedBox> offer;
  };
  /// Reads the box as one of two GPUs, and offers it until the other has read it too. `begun` is
  /// told of the first piece.
  const auto read = [&](int index, bool is_held, std::promise<void>& begun,
                        std::future<void> go_on) {
    const Device device{DeviceType::kCuda, index};
    const test::CurrentDeviceScope current(device);
    const backend::OwnedStream own(device);
    const StreamScope scope(own.get());
    std::optional<HeldStream> held;
    if (is_held) held.emplace(own.get());
    const auto letting_go = std::async(std::launch::async, [&] {
      go_on.wait();
      if (held) held->let_go();
    });
    int pieces = 0;
    const auto bring = [&](const Box&, const Tensor& place) {
      fill(place, index + 1);
      if (++pieces == 1) begun.set_value();
    };
    const auto offer = boxes.read(0, DType::kFloat32, box, device, {index, 2}, bring);
    const Part& part = offer->part();
    EXPECT_EQ(offer->taken_bytes(), part.local.nbytes() / 2);
    letting_go.wait();
    EXPECT_EQ(to_device(part.local, kCpu).data<float>()[0], 1);
    EXPECT_EQ(to_device(part.local, kCpu).data<float>()[part.local.size() - 1], 2);
    return Read{pieces, offer};
  };
  std::promise<void> first_begun, second_begun, go_on, at_once;
  auto first = std::async(std::launch::async,
                          [&] { return read(0, true, first_begun, go_on.get_future()); });
  first_begun.get_future().wait();
  at_once.set_value();
  auto second = std::async(std::launch::async,
                           [&] { return read(1, false, second_begun, at_once.get_future()); });
  second_begun.get_future().wait_for(std::chrono::seconds(5));  // it may find nothing to bring
  go_on.set_value();
  const Read by_first = first.get(), by_second = second.get();
  EXPECT_EQ(by_first.pieces, 1);
  EXPECT_EQ(by_second.pieces, 1);
}

}  // namespace
}  // namespace cuop::executor
