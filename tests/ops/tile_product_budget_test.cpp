// The kernels of products of our own, compiled for three GPUs: each fits its registers.
#include <gtest/gtest.h>

#include "cuop/core/text.h"
#include "cuop/ops/matmul/matmul_kernels.h"
#include "tests/jit/resources.h"

namespace cuop::kernels {
namespace {

using backend::Kernel;
using backend::KernelType;

class TileProductBudget : public test::KernelBudget {
 protected:
  /// a along its depth and b along its lines, as row-major matrices are, or the other way round.
  void expect(Kernel kernel, DType dtype, int registers, bool is_turned = false,
              bool conjugate_a = false) {
    TileProductPlan plan;
    plan.kernel = completed_product(kernel);
    plan.dtype = dtype;
    const auto width = static_cast<int>(16 / itemsize(dtype));
    plan.a = {!is_turned, width};
    plan.b = {is_turned, width};
    plan.conjugate_a = conjugate_a;
    EXPECT_EQ(product_obstacle(plan.kernel, dtype, {}, 0), "") << name(kernel) << ' ' << dtype;
    expect_within(tile_product_kernel(plan), registers, 0, kernel.is_bulk ? 1 : 0);
  }
};

constexpr DType kTileDTypes[] = {DType::kFloat16, DType::kBFloat16,  DType::kFloat32,
                                 DType::kFloat64, DType::kComplex64, DType::kComplex128};

TEST_F(TileProductBudget, Simple) {
  expect({KernelType::kSimple}, DType::kFloat16, 64);
  expect({KernelType::kSimple}, DType::kComplex128, 64, false, true);
  Kernel bare{KernelType::kSimple};
  bare.in_shared = bare.is_coalesced = false;
  expect(bare, DType::kFloat32, 64);
}

TEST_F(TileProductBudget, Tiled) {
  for (const DType dtype : kTileDTypes) {
    expect({KernelType::kTiled}, dtype, 160, false, is_complex(dtype));
  }
  expect({KernelType::kTiled, 32, 256}, DType::kFloat32, 80);
  expect({KernelType::kTiled, 128}, DType::kFloat32, 200, true);
  expect({KernelType::kTiled, 128}, DType::kFloat64, 255);
}

TEST_F(TileProductBudget, OnMatrixUnits) {
  expect({KernelType::kTensorCore, 128}, DType::kBFloat16, 255);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    expect({KernelType::kTensorCore, 64}, dtype, 200, true);
    expect({KernelType::kTensorCore, 128}, dtype, 255);
  }
}

TEST_F(TileProductBudget, WithRowsBroughtByTheCopyEngine) {
  Kernel kernel{KernelType::kTiled, 128};
  kernel.is_bulk = true;
  expect(kernel, DType::kFloat32, 255);
  kernel.type = KernelType::kTensorCore;
  kernel.tile = 64;
  expect(kernel, DType::kFloat32, 200, true);
}

}  // namespace
}  // namespace cuop::kernels
