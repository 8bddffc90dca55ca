// Tests of kernels for the matrix units of compute capability 9.0.
#pragma once

#include <cmath>
#include <limits>
#include <string>

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

  /// Each element within so many units of rounding of its terms' magnitudes, and float32's least
  /// number for each of so many terms.
  static void expect_rounded(const Tensor& result, const Tensor& wanted, const Tensor& magnitudes,
                             double units, double terms, const std::string& what) {
    const auto given = host_values(result), right = host_values(wanted),
               sizes = host_values(magnitudes);
    ASSERT_EQ(given.size(), right.size()) << what;
    int shown = 0;
    for (size_t i = 0; i < given.size() && shown < 3; ++i) {
      const double allowed = units * 0x1p-24 * sizes[i].real() + terms * 0x1p-149;
      if (std::abs(given[i] - right[i]) <= allowed) continue;
      ADD_FAILURE() << what << ": element " << i << " is " << given[i].real() << " instead of "
                    << right[i].real() << ", allowed is " << allowed;
      ++shown;
    }
  }
};

}  // namespace cuop
