#include "cuop/backend/slot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cuop::backend {
namespace {

constexpr Device kGpu{DeviceType::kCuda, 0};

TEST(Slot, AnOperatorWithoutAKernelForTheDeviceSaysWhatExists) {
  constexpr Slot<int(int)> kOnlyCpu(
      "fold", +[](int value) { return value + 1; });
  EXPECT_EQ(kOnlyCpu(kCpu, 1), 2);
  EXPECT_TRUE(kOnlyCpu.supports(kCpu));
  EXPECT_FALSE(kOnlyCpu.supports(kGpu));
  try {
    kOnlyCpu(kGpu, 1);
    FAIL() << "it ran elsewhere than asked";
  } catch (const NotImplementedError& error) {
    EXPECT_STREQ(error.what(), "fold: no kernel for cuda:0; there is one for cpu");
  }
}

TEST(Slot, RunsTheKernelOfTheDevice) {
  constexpr Slot<int()> kBoth(
      "which", +[] { return 1; }, +[] { return 2; });
  EXPECT_EQ(kBoth(kCpu), 1);
  EXPECT_EQ(kBoth(kGpu), 2);
}

}  // namespace
}  // namespace cuop::backend
