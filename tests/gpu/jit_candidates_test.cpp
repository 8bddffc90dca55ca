// What JIT wrappers measure on a GPU where the kernels are the operator's own: several shapes of
// them, of which each gives the right result.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "cuop/operators/activations.h"
#include "cuop/operators/convolution.h"
#include "cuop/operators/normalisation.h"
#include "cuop/operators/products.h"
#include "cuop/operators/tuned/jit.h"
#include "cuop/ops/agreement.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "tests/gpu/compare.h"
#include "tests/gpu/gpu_test.h"
#include "tests/own_cache.h"
#include "tests/temporary_folder.h"

namespace cuop {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

class GpuJitCandidates : public GpuTest {
 protected:
  static Tensor random(const Shape& shape, int seed) {
    return test::random_tensor(shape, DType::kFloat32, seed);
  }
  static JitConfig best() {
    JitConfig config;
    config.optimization_level = "best";  // measures at once, however busy the GPU is
    return config;
  }

  /// Chooses for a call, and compares its result with that of the operator on the CPU.
  template <class Op>
  void expect_four(Op& op, Jit<Op>& wrapper, const Tensor& x, const Shape& out) {
    const Tensor expected = op.forward(x, zeros(out, DType::kFloat32, kCpu));
    wrapper.set_jit_config(best());
    const Tensor found = wrapper.forward(to_device(x, kGpu), zeros(out, DType::kFloat32, kGpu));
    EXPECT_EQ(disagreement(expected, to_device(found, kCpu)), "");
    const TuningReport report = wrapper.tuning_report();
    EXPECT_EQ(report.source, "measured");
    int different = 0;
    for (const tune::Measurement& one : report.candidates) {
      if (!one.name.starts_with("tiled")) continue;  // an algorithm of a library
      EXPECT_THAT(one.why_out, Not(HasSubstr("another result"))) << one.name;
      EXPECT_THAT(one.why_out, Not(HasSubstr("failed"))) << one.name;
      if (one.why_out.find("the same launches") == std::string::npos) ++different;
    }
    EXPECT_GE(different, 4) << report.text;
    EXPECT_THAT(report.text, AnyOf(HasSubstr("tiled: "), HasSubstr("library: ")));
  }
};

TEST_F(GpuJitCandidates, OfActivations) {
  Relu<float> relu;
  Jit<Relu<float>> jit_relu;
  expect_four(relu, jit_relu, random({19, 45}, 1), {19, 45});
  Softmax<float> softmax;
  Jit<Softmax<float>> jit_softmax;
  expect_four(softmax, jit_softmax, random({19, 45}, 1), {19, 45});
}

TEST_F(GpuJitCandidates, OfSoftmaxAlongOtherAxes) {
  const Tensor x = random({3, 40, 21}, 2), y = zeros(x.shape(), x.dtype(), kGpu);
  Jit<Softmax<float>> softmax;
  softmax.set_jit_config(best());
  softmax.forward(to_device(x, kGpu), y, 1);
  const Tensor expected = Softmax<float>().forward(x, zeros(x.shape(), x.dtype(), kCpu), 1);
  EXPECT_EQ(disagreement(expected, to_device(y, kCpu)), "");
  EXPECT_THAT(softmax.tuning_report().text, Not(HasSubstr("another result")));
}

TEST_F(GpuJitCandidates, OfNorms) {
  BatchNorm<float> batch;
  Jit<BatchNorm<float>> jit_batch;
  expect_four(batch, jit_batch, random({4, 5, 6}, 3), {4, 5, 6});
  LayerNorm<float> layer;
  layer.set_gamma(random({30}, 4));
  Jit<LayerNorm<float>> jit_layer;
  jit_layer.set_gamma(to_device(random({30}, 4), kGpu));
  expect_four(layer, jit_layer, random({7, 30}, 5), {7, 30});
}

TEST_F(GpuJitCandidates, OfAMatrixTimesAVector) {
  Gemv<float> gemv;
  gemv.set_weight(random({33, 21}, 6));
  Jit<Gemv<float>> wrapper;
  wrapper.set_weight(to_device(random({33, 21}, 6), kGpu));
  expect_four(gemv, wrapper, random({21}, 7), {33});
}

TEST_F(GpuJitCandidates, OfAProductAreTheLibrarysAlgorithmsAndKernelsOfItsOwn) {
  const Tensor weight = random({33, 72}, 12), a = random({80, 33}, 13), c = random({80, 72}, 14);
  Gemm<float> gemm(false, false, 2.0, 0.5);
  gemm.set_weight(weight);
  const Tensor expected = gemm.forward(a, clone(c));
  Jit<Gemm<float>> wrapper(false, false, 2.0, 0.5);
  wrapper.set_weight(to_device(weight, kGpu));
  wrapper.set_jit_config(best());
  const Tensor found = wrapper.forward(to_device(a, kGpu), to_device(c, kGpu));
  EXPECT_EQ(disagreement(expected, to_device(found, kCpu)), "");
  const TuningReport report = wrapper.tuning_report();
  EXPECT_EQ(report.source, "measured");
  int own = 0, algorithms = 0;
  for (const tune::Measurement& one : report.candidates) {
    if (one.name.starts_with("cuBLASLt's choice")) {
      algorithms += one.median_ms > 0.0 ? 1 : 0;
      continue;
    }
    if (one.name == "library") continue;  // the fastest of those
    EXPECT_THAT(one.name, ::testing::ContainsRegex("^(tiled|tensor_core|simple)/"));
    EXPECT_THAT(one.why_out, Not(HasSubstr("another result"))) << one.name;
    EXPECT_THAT(one.why_out, Not(HasSubstr("failed"))) << one.name;
    const bool is_tried = one.why_out.find("not run") == std::string::npos &&
                          one.why_out.find("the same launches") == std::string::npos;
    own += is_tried ? 1 : 0;
  }
  EXPECT_GE(own, 4) << report.text;
  EXPECT_GE(algorithms, 1) << report.text;
}

TEST_F(GpuJitCandidates, OfConvolutions) {
  const Convolution2DOptions options{
      .in_channels = 2, .out_channels = 6, .kernel_h = 3, .kernel_w = 3, .pad_h = 1};
  Convolution2D<float> conv(options);
  conv.set_weight(random({6, 2, 3, 3}, 8));
  Jit<Convolution2D<float>> wrapper(options);
  wrapper.set_weight(to_device(random({6, 2, 3, 3}, 8), kGpu));
  expect_four(conv, wrapper, random({2, 2, 9, 8}, 9), {2, 6, 9, 6});
}

TEST_F(GpuJitCandidates, ABlocksSizeIsThatOfTheConfiguration) {
  Jit<Softmax<float>> softmax;
  JitConfig config;
  config.kernel_type = KernelType::kTiled;
  config.block_size = 512;
  softmax.set_jit_config(config);
  const Tensor x = random({300, 45}, 10), y = zeros(x.shape(), x.dtype(), kGpu);
  softmax.forward(to_device(x, kGpu), y);
  const Tensor expected = Softmax<float>().forward(x, zeros(x.shape(), x.dtype(), kCpu));
  EXPECT_EQ(disagreement(expected, to_device(y, kCpu)), "");
  EXPECT_EQ(softmax.profile().kernel_type, "tiled/block=512");
}

/// The files below a folder.
std::vector<fs::path> files(const fs::path& folder) {
  std::vector<fs::path> all;
  if (!fs::exists(folder)) return all;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) all.push_back(entry.path());
  }
  return all;
}

TEST_F(GpuJitCandidates, AWrappersDirectoryHoldsItsBinariesAndWithTheCacheOffNothingIsWritten) {
  const test::TemporaryFolder folder;
  const test::OwnCache shared;
  const fs::path own = folder.path() / "own";
  const Tensor x = to_device(random({5, 40}, 11), kGpu);
  const Tensor y = to_device(zeros({5, 40}, DType::kFloat32, kCpu), kGpu);
  JitConfig ruled;
  ruled.kernel_type = KernelType::kTiled;  // one kernel
  Jit<Softmax<float>> softmax;
  softmax.set_jit_config(ruled);
  softmax.set_persistent_cache_directory(own.string());
  softmax.forward(x, y);
  EXPECT_TRUE(files(folder.path()).empty());
  EXPECT_FALSE(fs::exists(own));
  softmax.enable_persistent_cache(true);
  softmax.forward(x, y);
  const auto kept = files(own);
  EXPECT_TRUE(std::any_of(kept.begin(), kept.end(), [&](const fs::path& file) {
    return file.parent_path() == own / "kernels" && file.extension() == ".kernel";
  }));
  EXPECT_TRUE(files(shared.path()).empty());
}

}  // namespace
}  // namespace cuop
