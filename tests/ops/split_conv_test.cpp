// Convolutions by parts: their kernels' registers, how x is laid out, and where the rule takes
// them.
#include <gtest/gtest.h>

#include "cuop/ops/conv/split_conv_internal.h"
#include "tests/jit/resources.h"

namespace cuop::kernels {
namespace {

class SplitConvBudget : public test::KernelBudget {};

TEST_F(SplitConvBudget, Products) {
  // 384 threads share 65536 registers, 168 each, until they exchange them.
  for (const SplitConvTileShape tile : kSplitConvTiles) {
    expect_within(split_conv_kernel(tile), 168, 0, 1);
  }
}

TEST_F(SplitConvBudget, Images) {
  for (const bool is_again : {false, true}) expect_within(split_image_kernel(is_again), 80);
}

constexpr int kMultiprocessors = 132;

ConvSizes images(int64_t batch, int64_t channels, int64_t size, int64_t out_channels,
                 int64_t kernel = 3, int64_t stride = 1) {
  ConvSizes s;
  s.batch = batch;
  s.in_channels = channels;
  s.out_channels = out_channels;
  s.in = {1, size, size};
  s.kernel = {1, kernel, kernel};
  s.padding = {0, kernel / 2, kernel / 2};
  s.stride = {1, stride, stride};
  for (size_t i = 0; i < 3; ++i) {
    s.out[i] = (s.in[i] + 2 * s.padding[i] - s.kernel[i]) / s.stride[i] + 1;
  }
  return s;
}

bool is_by_parts(const ConvSizes& s) {
  return is_split_conv_faster(s, plan_split_conv(s, kMultiprocessors));
}

TEST(SplitConv, ServesLargeConvolutions) {
  EXPECT_TRUE(is_by_parts(images(32, 64, 224, 128)));
  EXPECT_TRUE(is_by_parts(images(64, 256, 56, 256)));
  EXPECT_TRUE(is_by_parts(images(64, 64, 112, 128, 3, 2)));
}

TEST(SplitConv, LeavesSmallAndThinOnesToTheLibrary) {
  EXPECT_FALSE(is_by_parts(images(1, 64, 28, 64)));
  EXPECT_FALSE(is_by_parts(images(32, 3, 224, 64)));
  EXPECT_FALSE(is_by_parts(images(32, 64, 224, 8)));
}

/// A row of zeros serves the end of one row of x and the beginning of the next.
TEST(SplitConv, RowsShareTheirZeros) {
  const jit::SplitConv p = plan_split_conv(images(2, 32, 225, 64), kMultiprocessors).arguments;
  EXPECT_EQ(p.extent[0].by, 1U);
  EXPECT_EQ(p.extent[1].by, 226U);
  EXPECT_EQ(p.extent[2].by, 226U);
  EXPECT_EQ(p.positions, 2 * 226 * 226);
  EXPECT_EQ(p.planes, 1);
  EXPECT_EQ(p.tap_groups[0], 0);
  EXPECT_EQ(p.tap_groups[8], 2 * 226 + 2);
}

/// Taps of one remainder by the stride meet the same elements; others are not laid out.
TEST(SplitConv, AStrideHasAPlaneForEachRemainderThatATapHas) {
  EXPECT_EQ(plan_split_conv(images(1, 32, 20, 64, 3, 2), kMultiprocessors).arguments.planes, 4);
  EXPECT_EQ(plan_split_conv(images(1, 32, 20, 64, 1, 2), kMultiprocessors).arguments.planes, 1);
}

TEST(SplitConv, WhatItCannotDo) {
  EXPECT_EQ(split_conv_obstacle(images(1, 1, 20, 1)), "");
  EXPECT_NE(split_conv_obstacle(images(1, 1, 20, 1, 9)), "");
  EXPECT_NE(split_conv_obstacle(images(1 << 20, 1, 40, 1)), "");
  ConvSizes grouped = images(1, 4, 20, 4);
  grouped.groups = 2;
  EXPECT_NE(split_conv_obstacle(grouped), "");
}

}  // namespace
}  // namespace cuop::kernels
