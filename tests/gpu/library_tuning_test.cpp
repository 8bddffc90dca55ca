// The search among a library's algorithms on a GPU: what is stored, read again and refused.
#include "cuop/tune/library_tuning.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "cuop/backend/cuda/libraries.h"
#include "cuop/operators/products.h"
#include "cuop/operators/tuned/chooser.h"
#include "cuop/operators/tuned/jit.h"
#include "cuop/ops/agreement.h"
#include "cuop/ops/conv/conv.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/matmul/matmul.h"
#include "cuop/tune/database.h"
#include "tests/gpu/compare.h"
#include "tests/gpu/gpu_test.h"
#include "tests/own_cache.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;

/// The version that the simulated cuBLASLt tells: its second algorithm is the fastest.
const std::string kSimulated = backend::version_text(backend::CudaLibrary::kCublasLt, 999);

class GpuLibraryTuning : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    version_ = backend::cuda_library_version(backend::CudaLibrary::kCublasLt);
    if (version_.empty()) GTEST_SKIP() << "needs cuBLASLt";
    forget_choices();
  }

  /// Searches for the fastest algorithm of op(a) @ b with a [m, 33], b [33, 17].
  static std::string search(int64_t m) {
    tune::LibraryTuning tuning(9, 60.0);
    check_product(m);
    EXPECT_TRUE(tuning.is_complete());
    return tuning.text();
  }
  static void check_product(int64_t m) {
    const Tensor a = test::random_tensor({m, 33}, DType::kFloat32, 1);
    const Tensor b = test::random_tensor({33, 17}, DType::kFloat32, 2);
    const Tensor c = matmul(to_device(a, kGpu), to_device(b, kGpu));
    EXPECT_EQ(disagreement(matmul(a, b), c), "");
  }
  /// The convolution of `count` images by 4 kernels of 3 x 3.
  static void check_conv(int64_t count) {
    const Tensor x = test::random_tensor({count, 2, 9, 8}, DType::kFloat32, 1);
    const Tensor w = test::random_tensor({4, 2, 3, 3}, DType::kFloat32, 2);
    const Tensor y = conv2d(to_device(x, kGpu), to_device(w, kGpu));
    EXPECT_EQ(disagreement(conv2d(x, w), y), "");
  }
  /// Stores for the product of `m` rows what `change` makes of the choice for that of `of` rows.
  template <class Change>
  static void store(int64_t of, int64_t m, Change&& change) {
    const std::string rows = " m " + std::to_string(of) + " ";
    const auto entries = tune::database()->entries();
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& one) {
      return one.key.find(rows) != std::string::npos;
    });
    ASSERT_NE(found, entries.end());
    tune::ChoiceStore::Entry entry = *found;
    entry.key.replace(entry.key.find(rows), rows.size(), " m " + std::to_string(m) + " ");
    change(entry.choice.value);
    tune::database()->save(entry.key, entry.choice);
  }

  std::string version_;
  const test::OwnCache cache_;
};

TEST_F(GpuLibraryTuning, PlainCallsMeasureNothing) {
  const int64_t searches = tune::database_statistics().searches;
  check_product(5);
  EXPECT_EQ(tune::database_statistics().searches, searches);
  EXPECT_TRUE(tune::database()->entries().empty());
}

TEST_F(GpuLibraryTuning, TheFastestAlgorithmIsStoredAndTakenByPlainCalls) {
  const std::string text = search(41);
  EXPECT_THAT(text, HasSubstr("gemm float32"));
  EXPECT_THAT(text, HasSubstr("cuBLASLt's choice 1: "));
  EXPECT_THAT(text, HasSubstr(", cuBLASLt " + version_));
  check_product(41);
  EXPECT_THAT(search(41), HasSubstr("stored: "));
  if (version_ != kSimulated) return;
  EXPECT_THAT(text, HasSubstr("cuBLASLt's choice 3: another result: element 0"));
  EXPECT_THAT(text, HasSubstr("cuBLASLt's choice 4: failed: matmul: cuBLASLt answered"));
  EXPECT_THAT(text, HasSubstr("% less than cuBLASLt's choice 1"));
  const auto entries = tune::database()->entries();
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].choice.value.substr(0, 2), "1 ");
  EXPECT_GT(entries[0].choice.gain, 0.02);
}

TEST_F(GpuLibraryTuning, WhatIsStoredIsShownToTheLibraryBeforeItIsUsed) {
  search(43);
  const auto before = tune::database_statistics();
  store(43, 45, [](std::string&) {});
  check_product(45);
  auto after = tune::database_statistics();
  EXPECT_EQ(after.loaded - before.loaded, 1);
  store(43, 47, [](std::string& value) { value = "ffff ffff ffff ffff ffff ffff ffff ffff 0"; });
  check_product(47);  // by the library's own choice
  after = tune::database_statistics();
  EXPECT_EQ(after.refused - before.refused, 1);
  store(43, 49, [](std::string& value) { value = "no algorithm at all"; });
  check_product(49);
  EXPECT_EQ(tune::database_statistics().loaded - before.loaded, 1);
}

TEST_F(GpuLibraryTuning, EnginesOfConvolutionsAreSearchedForStoredAndReadAgain) {
  const std::string version = backend::cuda_library_version(backend::CudaLibrary::kCudnn);
  if (version.empty()) GTEST_SKIP() << "needs cuDNN";
  std::string text;
  {
    tune::LibraryTuning tuning(9, 60.0);
    check_conv(3);
    text = tuning.text();
  }
  EXPECT_THAT(text, HasSubstr("conv float32 batch 3"));
  EXPECT_THAT(text, HasSubstr("cuDNN's engine "));
  check_conv(3);  // by the winner
  const auto entries = tune::database()->entries();
  ASSERT_EQ(entries.size(), 1U);
  if (version == kSimulated) {
    EXPECT_THAT(text, HasSubstr("cuDNN's engine 12 6=25 7=24: another result: element 0"));
    EXPECT_THAT(text, testing::Not(HasSubstr("engine 13")));  // differs from run to run
    EXPECT_EQ(entries[0].choice.value, "11 6=23 7=22");
  }
  const auto store = [&](int64_t count, const std::string& value) {
    tune::ChoiceStore::Entry entry = entries[0];
    const std::string batch = "batch 3";
    entry.key.replace(entry.key.find(batch), batch.size(), "batch " + std::to_string(count));
    if (!value.empty()) entry.choice.value = value;
    tune::database()->save(entry.key, entry.choice);
  };
  const auto before = tune::database_statistics();
  store(5, "");
  check_conv(5);
  EXPECT_EQ(tune::database_statistics().loaded - before.loaded, 1);
  store(7, "123456 1=2");
  check_conv(7);  // by cuDNN's own choice
  store(8, "no engine");
  check_conv(8);
  EXPECT_EQ(tune::database_statistics().refused - before.refused, 2);
}

TEST_F(GpuLibraryTuning, WrappersOnTheGpuSearchAndReport) {
  JitConfig config;
  config.optimization_level = "best";
  Jit<Gemm<float>> gemm(false, false, 2.0, 0.5);
  gemm.set_jit_config(config);
  gemm.enable_persistent_cache(true);
  const Tensor a = test::random_tensor({37, 21}, DType::kFloat32, 1);
  const Tensor b = test::random_tensor({21, 13}, DType::kFloat32, 2);
  const Tensor c = test::random_tensor({37, 13}, DType::kFloat32, 3), on_gpu = to_device(c, kGpu);
  gemm.set_weight(to_device(b, kGpu));
  gemm.forward(to_device(a, kGpu), on_gpu);
  Gemm<float> oracle(false, false, 2.0, 0.5);
  oracle.set_weight(b);
  EXPECT_EQ(disagreement(oracle.forward(a, c), on_gpu), "");  // accumulated once
  const TuningReport report = gemm.tuning_report();
  EXPECT_EQ(report.source, "measured");
  EXPECT_THAT(report.text, HasSubstr("cuBLASLt's choice 1: "));
  EXPECT_EQ(tune::database()->entries().size(), 2U);  // the wrapper's choice and the library's
  EXPECT_GE(report.gain, version_ == kSimulated ? 0.02 : 0.0);
}

TEST_F(GpuLibraryTuning, NothingIsSearchedForWhileAGraphIsCaptured) {
  JitConfig config;
  config.optimization_level = "best";
  Jit<Gemm<float>> gemm;
  gemm.set_jit_config(config);
  const Tensor a = full({8, 8}, 1.0, DType::kFloat32, kGpu);
  const Tensor c = full({8, 8}, 0.0, DType::kFloat32, kGpu);
  gemm.set_weight(full({8, 8}, 2.0, DType::kFloat32, kGpu));
  const auto graph = backend::runtime(kGpu).create_graph();
  graph->begin();
  gemm.forward(a, c);
  graph->end();
  EXPECT_EQ(gemm.tuning_report().source, "put off");
  EXPECT_THAT(gemm.tuning_report().text, HasSubstr("a graph is being captured"));
  graph->replay(current_stream(kGpu));
  EXPECT_EQ(to_device(c, kCpu).data<float>()[0], 16.0F);
}

}  // namespace
}  // namespace cuop
