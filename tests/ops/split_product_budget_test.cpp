// The kernels of products by parts: each fits its registers, sums stay in them; and where the rule
// takes them.
#include <gtest/gtest.h>

#include "cuop/ops/matmul/split_product_internal.h"
#include "tests/jit/resources.h"

namespace cuop::kernels {
namespace {

class SplitProductBudget : public test::KernelBudget {};

TEST_F(SplitProductBudget, Products) {
  // 384 threads share 65536 registers, 168 each, until they exchange them.
  for (const int columns : {64, 128}) expect_within(split_product_kernel(columns), 168, 0, 1);
}

TEST_F(SplitProductBudget, Operands) {
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      expect_within(split_operands_kernel(a, 1, b, 1), 96);
      expect_within(split_operands_kernel(a, a ? 1 : 4, b, b ? 1 : 4), 96);
    }
  }
}

constexpr int kOfAnH100 = 132;

TEST(SplitProduct, ServesLargeProducts) {
  EXPECT_EQ(split_columns(8192, 8192, 8192, 1, kOfAnH100), 128);
  EXPECT_EQ(split_columns(2048, 2048, 2048, 1, kOfAnH100), 128);
  EXPECT_EQ(split_columns(1024, 1024, 1024, 1, kOfAnH100), 64);
  EXPECT_EQ(split_columns(1024, 1024, 1024, 64, kOfAnH100), 128);
  EXPECT_EQ(split_columns(8192, 8192, 64, 1, kOfAnH100), 128);
  EXPECT_EQ(split_columns(4097, 4097, 4097, 1, kOfAnH100), 128);
}

TEST(SplitProduct, LeavesSmallAndThinProductsToTheLibrary) {
  EXPECT_EQ(split_columns(256, 256, 256, 1, kOfAnH100), 0);
  EXPECT_EQ(split_columns(1, 8192, 8192, 1, kOfAnH100), 0);
  EXPECT_EQ(split_columns(8192, 16, 8192, 1, kOfAnH100), 0);
  EXPECT_EQ(split_columns(8192, 64, 8192, 1, kOfAnH100), 0);
  EXPECT_EQ(split_columns(512, 512, 8192, 1, kOfAnH100), 0);
  EXPECT_EQ(split_columns(20001, 2001, 77, 1, kOfAnH100), 0);  // rows of an odd length
  EXPECT_EQ(split_columns(256, 256, 256, 256, kOfAnH100), 0);
  EXPECT_EQ(split_columns(32, 32, 32, 4096, kOfAnH100), 0);
}

}  // namespace
}  // namespace cuop::kernels
