// Other ways to compile a kernel, and what the compiler makes of them. No GPU is needed for that.
#include "cuop/jit/build_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuop/jit/cuda/row_plan.h"
#include "cuop/jit/kernel_text.h"
#include "cuop/ops/softmax/softmax_kernels.h"
#include "tests/jit/resources.h"

namespace cuop::jit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// The softmax of rows of so many elements, as the options around the call say.
TextKernel softmax_kernel(int64_t length) {
  const RowPlan plan = kernels::softmax_rows_plan(length, DType::kFloat64, {});
  return kernels::softmax_rows_kernel(DType::kFloat64, plan, false);
}
CompileRequest softmax_of(int64_t length) { return kernel_request(softmax_kernel(length)); }

TEST(BuildOptions, OfOtherThreadsAndAfterAScopeAreTheUsual) {
  EXPECT_EQ(build_key(), "");
  const std::string usual = softmax_of(333).source;
  {
    const backend::ExecutionScope scope(
        backend::with_build({.max_registers = 40, .assembler_level = 1, .is_unrolled = false}));
    EXPECT_EQ(build_key(), " registers 40 level 1 not unrolled");
    EXPECT_EQ(launch_bounds(128), "");
    const CompileRequest request = softmax_of(333);
    EXPECT_THAT(request.source, Not(HasSubstr("__launch_bounds__")));
    EXPECT_THAT(request.options,
                ElementsAre("--maxrregcount=40", "--ptxas-options=-O1", kNotUnrolled));
  }
  EXPECT_EQ(build_key(), "");
  EXPECT_EQ(launch_bounds(128), "__launch_bounds__(128) ");
  EXPECT_EQ(softmax_of(333).source, usual);
  EXPECT_TRUE(softmax_of(333).options.empty());
}

TEST(BuildOptions, ALargeBlocksThreadsGetNoMoreThanTheirShare) {
  const backend::ExecutionScope scope(backend::with_build({.max_registers = 255}));
  EXPECT_THAT(with_build_options({}, 1024).options, ElementsAre("--maxrregcount=64"));
  EXPECT_THAT(with_build_options({}, 256).options, ElementsAre("--maxrregcount=255"));
}

TEST(BuildOptions, EveryFactorOfUnrollingBecomesOne) {
  EXPECT_EQ(without_unrolling("a\n#pragma unroll\nfor\n#pragma unroll 4\nb\n#pragma once\n"),
            "a\n#pragma unroll 1\nfor\n#pragma unroll 1\nb\n#pragma once\n");
  EXPECT_EQ(without_unrolling("#pragma unroll"), "#pragma unroll 1");
  EXPECT_EQ(without_unrolling(""), "");
}

TEST(BuildOptions, EachHasAKeyOfItsOwn) {
  const CompileRequest usual = softmax_of(333);
  CompileRequest rolled = usual;
  rolled.options.emplace_back(kNotUnrolled);
  EXPECT_NE(compile_key(usual, "x"), compile_key(rolled, "x"));
}

class BuildOptionsCompiled : public ::testing::Test {
 protected:
  void SetUp() override {
    const Nvrtc& nvrtc = Nvrtc::instance();
    if (!nvrtc.is_available()) GTEST_SKIP() << "needs NVRTC: " << nvrtc.reason();
  }
  static std::string image_of(const backend::BuildOptions& options) {
    const backend::ExecutionScope scope(backend::with_build(options));
    CompileRequest request = softmax_of(8192);
    request.arch = "sm_90a";
    return Nvrtc::instance().compile(request, 120.0).image;
  }
};

TEST_F(BuildOptionsCompiled, RegistersAreLimited) {
  for (const char* arch : test::kArchitectures) {
    EXPECT_GT(test::resources_of(softmax_of(8192), arch).registers, 32) << arch;
    const backend::ExecutionScope scope(backend::with_build({.max_registers = 32}));
    EXPECT_LE(test::resources_of(softmax_of(8192), arch).registers, 32) << arch;
  }
}

TEST_F(BuildOptionsCompiled, EveryFieldMakesAnotherBinary) {
  const std::string usual = image_of({});
  EXPECT_EQ(image_of({}), usual);
  EXPECT_NE(image_of({.max_registers = 32}), usual);
  EXPECT_NE(image_of({.assembler_level = 0}), usual);
  EXPECT_NE(image_of({.assembler_level = 1}), usual);
  EXPECT_NE(image_of({.is_unrolled = false}), usual);
}

}  // namespace
}  // namespace cuop::jit
