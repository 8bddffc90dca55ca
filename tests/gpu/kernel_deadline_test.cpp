// A kernel that the background compiles, and a thread whose time is over before it has.
#include <gmock/gmock.h>

#include "cuop/core/deadline.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/jit/cuda/kernel_cache.h"
#include "tests/error_of.h"
#include "tests/gpu/gpu_test.h"
#include "tests/own_cache.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;

class GpuKernelDeadline : public GpuTest {
 protected:
  /// Takes a compiler long.
  static jit::CompileRequest request() {
    std::string source = "extern \"C\" __global__ void cuop_kernel(float* x) {\n";
    for (int i = 0; i < 1500; ++i) {
      source += cat("x[", i, "] = x[", i + 1, "] * x[", (i * 7) % 1500, "] + ", i, ".0f;\n");
    }
    return {.name = "slow", .source = source + "}", .arch = ""};
  }
  static const jit::LoadedKernel& loaded() {
    return jit::loaded_kernel(kGpu, "a test of deadlines", [] { return request(); });
  }

  const test::OwnCache cache_;  // which has not compiled it before
};

TEST_F(GpuKernelDeadline, WaitsNoLongerThanTheThreadHasTime) {
  ASSERT_EQ(jit::kernel_if_ready(kGpu, "a test of deadlines", [] { return request(); }), nullptr);
  {
    const DeadlineScope no_time(0.0);
    EXPECT_THAT(test::error_of<CompilationError>([] { loaded(); }),
                HasSubstr("slow was not compiled within 0 s"));
  }
  {
    const DeadlineScope enough(3600.0);
    EXPECT_EQ(loaded().title, "slow") << "what the background makes is not lost";
  }
  EXPECT_EQ(loaded().title, "slow");
}

}  // namespace
}  // namespace cuop
