// Tests of kernels for the matrix units of compute capability 9.0.
#pragma once

#include <limits>

#include "cuop/backend/runtime.h"
#include "tests/gpu/gpu_values.h"

namespace cuop {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr DType kSingle = DType::kFloat32;

class MatrixUnitsTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    if (backend::runtime(kGpu).kernel_limits().capability != 90) {
      GTEST_SKIP() << "needs a GPU of compute capability 9.0";
    }
  }
};

}  // namespace cuop
