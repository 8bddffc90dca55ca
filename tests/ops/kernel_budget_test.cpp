// The kernels of fixed text, compiled for three GPUs.
#include <gtest/gtest.h>

#include "cuop/core/text.h"
#include "cuop/ops/index/index_cuda_internal.h"
#include "cuop/ops/random/random_cuda_internal.h"
#include "tests/jit/resources.h"

namespace cuop::kernels {
namespace {

class KernelBudget : public ::testing::Test {
 protected:
  void SetUp() override {
    const jit::Nvrtc& nvrtc = jit::Nvrtc::instance();
    if (!nvrtc.is_available()) GTEST_SKIP() << "needs NVRTC: " << nvrtc.reason();
  }

  static void check(const jit::TextKernel& kernel, int registers) {
    for (const char* arch : test::kArchitectures) {
      const test::Resources used = test::resources_of(kernel_request(kernel), arch);
      EXPECT_GT(used.registers, 0) << kernel.call << " for " << arch;
      EXPECT_LE(used.registers, registers) << kernel.call << " for " << arch;
      EXPECT_EQ(used.spilled, 0) << kernel.call << " for " << arch;
    }
  }
};

TEST_F(KernelBudget, RandomNumbersKeepTheirBudgets) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    check(random_fill_kernel(dtype, Distribution::kNormal), 40);
    check(random_fill_kernel(dtype, Distribution::kUniform), 40);
  }
  check(random_fill_kernel(DType::kFloat64, Distribution::kNormal), 64);
  check(random_fill_kernel(DType::kFloat64, Distribution::kUniform), 40);
  for (const DType dtype : {DType::kInt8, DType::kUInt16, DType::kInt32, DType::kUInt64}) {
    check(random_fill_kernel(dtype, Distribution::kInteger), 48);
  }
}

TEST_F(KernelBudget, OffsetsKeepTheirBudgets) {
  check(list_indices_kernel(), 32);
  check(count_mask_kernel(), 40);
  check(list_mask_kernel(false), 56);
  check(list_mask_kernel(true), 56);
  check(enter_offsets_kernel(), 32);
  check(keep_last_offsets_kernel(), 32);
}

TEST_F(KernelBudget, CopiesByOffsetsKeepTheirBudgets) {
  for (const bool is_gather : {true, false}) {
    for (const int64_t itemsize : {1, 2, 4, 8, 16}) {
      const auto widest = static_cast<int>(16 / itemsize);
      check(listed_copy_kernel({itemsize, 1, 1, is_gather}), 32);
      check(listed_copy_kernel({itemsize, widest, 2, is_gather}), 64);
    }
    for (const int axes : {0, 3, 4}) {
      check(listed_copy_kernel({4, 1, axes, is_gather}), 64);
      check(listed_copy_kernel({4, 4, axes, is_gather, true}), 72);
    }
  }
}

}  // namespace
}  // namespace cuop::kernels
