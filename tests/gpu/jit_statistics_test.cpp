// What JIT wrappers count on a GPU.
#include "cuop/jit/compile_service.h"
#include "cuop/operators/activations.h"
#include "cuop/operators/tuned/jit.h"
#include "cuop/ops/create/create.h"
#include "tests/gpu/gpu_test.h"
#include "tests/own_cache.h"

namespace cuop {
namespace {

class GpuJitStatistics : public GpuTest {
 protected:
  static void call(Jit<Softmax<double>>& softmax, int64_t columns) {
    const Tensor x = full({3, columns}, 1.0, DType::kFloat64, kGpu);
    softmax.forward(x, zeros(x.shape(), x.dtype(), kGpu));
  }

  const test::OwnCache cache_;  // with no kernels
};

TEST_F(GpuJitStatistics, CompilationsAreTheCompilersAndMissesTheChoices) {
  const int64_t before = jit::compile_statistics().compilations;
  Jit<Softmax<double>> softmax;
  JitConfig config;
  config.kernel_type = KernelType::kTiled;  // of whose shapes none is tried
  softmax.set_jit_config(config);
  for (const int64_t columns : {40, 41, 4000, 40000}) call(softmax, columns);
  const JitStatistics first = softmax.statistics();
  EXPECT_EQ(first.compilations, jit::compile_statistics().compilations - before);
  EXPECT_GE(first.compilations, 1);
  EXPECT_GT(first.compilation_time_ms, 0.0);
  EXPECT_EQ(first.cache_misses, 4);
  // The kernels of a shape serve its neighbours.
  for (const int64_t columns : {40, 41, 4000, 40000}) call(softmax, columns);
  call(softmax, 43);
  EXPECT_EQ(softmax.statistics().compilations, first.compilations);
  EXPECT_EQ(softmax.statistics().cache_misses, 5);
  EXPECT_EQ(softmax.statistics().cache_hits, 4);
}

}  // namespace
}  // namespace cuop
