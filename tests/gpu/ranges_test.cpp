// Every operation on a GPU is a range of the profiler that is attached, recorded ones too.
#include <string>
#include <utility>

#include "cuop/backend/graph.h"
#include "cuop/core/dynlib.h"
#include "cuop/operators/tuned/user_kernel.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "tests/gpu/gpu_test.h"
#include "tests/own_process.h"

namespace cuop {
namespace {

class GpuRanges : public GpuTest {};
class GpuRangesProcess : public GpuTest {
 protected:
  /// The ranges since the last call.
  std::string told() {
    const std::string all = told_();
    return all.substr(std::exchange(seen_, all.size()));
  }

 private:
  const DynLib profiler_{"profiler", {CUOP_FAKE_NVTX}};
  const char* (*const told_)() = profiler_.require("told_ranges");
  size_t seen_ = 0;
};

TEST_F(GpuRanges, EveryOperationIsARange) {
  EXPECT_EQ(test::run_in_process("GpuRangesProcess.DISABLED_EveryOperationIsARange",
                                 "CUOP_NVTX_LIBRARY='" CUOP_FAKE_NVTX "'"),
            0);
}

TEST_F(GpuRangesProcess, DISABLED_EveryOperationIsARange) {
  const Tensor x = ones({5}, DType::kFloat32, kGpu);
  EXPECT_EQ(told(), "<ones<full>>");
  arange(0, 5, 1, DType::kFloat32, kGpu);
  EXPECT_EQ(told(), "<arange>");
  linspace(0.0, 1.0, 5, DType::kFloat32, true, kGpu);
  EXPECT_EQ(told(), "<linspace>");
  eye(3, 3, 0, DType::kFloat32, kGpu);
  EXPECT_EQ(told(), "<eye<zeros><fill>>");
  to_device(x, kCpu);
  EXPECT_EQ(told(), "<copy>");

  UserKernel mark(R"(extern "C" __global__ void mark(float* x) { x[0] = 7; })", "mark");
  mark.launch({x}, [](size_t) { return KernelLaunch{.block = {1, 1, 1}}; });
  EXPECT_EQ(told(), "<mark>");

  sqrt(exp(x));  // their kernels are loaded before the capture
  told();
  const auto graph = backend::runtime(kGpu).create_graph();
  graph->begin();
  const Tensor y = sqrt(exp(x));
  graph->end();
  EXPECT_EQ(told(), "<exp><sqrt>");
  graph->replay(current_stream(kGpu));
  EXPECT_EQ(told(), "<graph>");
}

}  // namespace
}  // namespace cuop
