// Tests that need a CUDA GPU say so and are skipped without one.
#pragma once

#include <gtest/gtest.h>

#include "cuop/backend/runtime.h"

namespace cuop {

inline constexpr Device kGpu{DeviceType::kCuda, 0};

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (backend::device_count(DeviceType::kCuda) == 0) GTEST_SKIP() << "needs a CUDA GPU";
  }
};

}  // namespace cuop
