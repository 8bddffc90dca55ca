// The shapes in which kernels of our own are compiled: what is asked for reaches the text, and each
// makes a binary of its own. No GPU is needed for that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cuop/backend/execution.h"
#include "cuop/jit/build_options.h"
#include "cuop/jit/cuda/row_plan.h"
#include "cuop/operators/task.h"
#include "cuop/ops/conv/conv_kernels.h"
#include "cuop/ops/norm/norm_kernels.h"
#include "cuop/ops/softmax/softmax_kernels.h"
#include "tests/jit/resources.h"

namespace cuop::jit {
namespace {

using backend::ExecutionScope;
using backend::with_kernel;
using ::testing::ElementsAre;

RowPlan plan(int64_t length, const backend::KernelShape& shape) {
  const backend::ExecutionScope scope(backend::with_kernel({.shape = shape}));
  return plan_rows(length, length, DType::kFloat32, 20, {});
}

TEST(KernelShape, AnAccessIsWhatDividesAddressesAndCounts) {
  EXPECT_EQ(access_width(4, 16, 0x1000, 64), 4);
  EXPECT_EQ(access_width(4, 8, 0x1000, 64), 2) << "no more was asked for";
  EXPECT_EQ(access_width(4, 16, 0x1008, 64), 2);
  EXPECT_EQ(access_width(4, 16, 0x1002, 64), 1) << "an element at no multiple of its size";
  EXPECT_EQ(access_width(4, 16, 0x1000, 64 | 6), 2);
  EXPECT_EQ(access_width(4, 16, 0x1000, -6), 2);
  EXPECT_EQ(access_width(4, 16, 0x1000, 7), 1);
  EXPECT_EQ(access_width(1, 16, 0x1000, 0), 16) << "a stride of 0 bounds nothing";
  EXPECT_EQ(access_width(16, 8, 0x1000, 4), 1);
}

TEST(KernelShape, InstancesNameTheirArguments) {
  EXPECT_EQ(instance("f", DType::kFloat32, 3, true, "void"), "f<float, 3, true, void>");
  EXPECT_EQ(instance("f", false), "f<false>");
  EXPECT_STREQ(word_type(1), "uint8_t");
  EXPECT_STREQ(word_type(8), "uint64_t");
  EXPECT_STREQ(word_type(16), "Word16");
}

TEST(KernelShape, RowsAreSharedAsAskedFor) {
  EXPECT_EQ(plan(64, {}).text(), "4, 4, 4");
  EXPECT_EQ(plan(64, {.access_bytes = 8}).text(), "2, 4, 8");
  EXPECT_EQ(plan(64, {.access_bytes = 4}).text(), "1, 32, 2");
  EXPECT_EQ(plan(64, {.team = 32}).text(), "4, 32, 1");
  EXPECT_EQ(plan(4096, {.team = 128}).text(), "4, 128, 8");
  EXPECT_EQ(plan(4096, {.team = 32}).text(), "4, 32, 0") << "too much to keep: read again";
  EXPECT_EQ(plan(100000, {.team = 128}).text(), "4, 128, 0");
}

TEST(KernelShape, BlocksHaveTheThreadsAskedForUnlessATeamIsOne) {
  EXPECT_EQ(plan(64, {}).threads(), 128);
  EXPECT_EQ(plan(64, {.threads = 512}).threads(), 512);
  EXPECT_EQ(plan(64, {.threads = 512}).blocks(1000), 8);  // 128 teams of 4 in each
  EXPECT_EQ(plan(4096, {.threads = 512}).threads(), 256);
  EXPECT_LT(plan(64, {.threads = 512}).resident, plan(64, {}).resident);
}

TEST(KernelShape, BlocksAreAMacroAndAKeyAndTheRestIsInTheText) {
  EXPECT_EQ(build_key(), "");
  const backend::ExecutionScope scope(
      backend::with_kernel({.shape = {.threads = 512, .access_bytes = 8, .team = 32, .each = 4}}));
  EXPECT_EQ(build_key(), " block 512");
  EXPECT_EQ(block_threads(256), 512);
  EXPECT_EQ(access_bytes(16), 8);
  EXPECT_THAT(with_build_options({}, 512).options, ElementsAre("-DCUOP_BLOCK_THREADS=512"));
}

/// The request of a kernel for each shape of an operator.
template <size_t count, class Make>
std::vector<CompileRequest> requests(const Kernel (&kernels)[count], Make&& make) {
  std::vector<CompileRequest> all;
  for (const Kernel& kernel : kernels) {
    const backend::ExecutionScope scope(backend::with_kernel(kernel));
    all.push_back(kernel_request(make()));
    all.back().arch = "sm_90a";
  }
  return all;
}

class KernelShapeCompiled : public ::testing::Test {
 protected:
  void SetUp() override {
    const Nvrtc& nvrtc = Nvrtc::instance();
    if (!nvrtc.is_available()) GTEST_SKIP() << "needs NVRTC: " << nvrtc.reason();
  }
  static size_t binaries(const std::vector<CompileRequest>& requests) {
    std::set<std::string> images;
    for (const CompileRequest& request : requests) {
      images.insert(Nvrtc::instance().compile(request, 120.0).image);
    }
    return images.size();
  }
};

TEST_F(KernelShapeCompiled, OfSoftmaxAtLeastFourDiffer) {
  const auto rows = [](int64_t length) {
    return requests(kRowsOnGpu, [length] {
      const RowPlan shared = kernels::softmax_rows_plan(length, DType::kFloat32, {});
      return kernels::softmax_rows_kernel(DType::kFloat32, shared, false);
    });
  };
  EXPECT_GE(binaries(rows(64)), 4u);
  EXPECT_GE(binaries(rows(4096)), 4u);
  EXPECT_GE(binaries(rows(100000)), 4u);
  const auto columns = requests(kRowsOnGpu, [] {
    const int team = backend::execution_options().kernel.shape.team;
    return kernels::softmax_columns_kernel(DType::kFloat32, team == 32 ? 32 : 8, false);
  });
  EXPECT_GE(binaries(columns), 4u);
}

TEST_F(KernelShapeCompiled, OfLayerNormAtLeastFourDiffer) {
  const auto rows = requests(kRowsOnGpu, [] {
    const RowPlan shared = kernels::norm_rows_plan(1000, 1, DType::kFloat32, {});
    return kernels::norm_rows_kernel(DType::kFloat32, shared, true, kernels::NormGroup::kNone);
  });
  EXPECT_GE(binaries(rows), 4u);
}

TEST_F(KernelShapeCompiled, OfConvolutionsAtLeastFourDiffer) {
  const auto direct = requests(kConvolutionOnGpu, [] {
    const int each = backend::execution_options().kernel.shape.each;
    return kernels::direct_conv_kernel(DType::kFloat32, each == 0 ? 8 : each, false);
  });
  EXPECT_GE(binaries(direct), 4u);
}

}  // namespace
}  // namespace cuop::jit
