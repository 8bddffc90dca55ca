// Tests that need a CUDA GPU say so and are skipped without one.
#pragma once

#include <gtest/gtest.h>

#include "cuop/backend/runtime.h"

namespace cuop {

inline constexpr Device kGpu{DeviceType::kCuda, 0};
inline constexpr DType kFloats[] = {DType::kFloat16, DType::kBFloat16, DType::kFloat32,
                                    DType::kFloat64};
inline constexpr DType kFloatsAndComplex[] = {DType::kFloat16,   DType::kBFloat16,
                                              DType::kFloat32,   DType::kFloat64,
                                              DType::kComplex64, DType::kComplex128};

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (backend::device_count(DeviceType::kCuda) == 0) GTEST_SKIP() << "needs a CUDA GPU";
  }
};

}  // namespace cuop
