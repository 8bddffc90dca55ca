// Why a product of our own is refused: what no GPU has is said before anything is compiled.
#include <gtest/gtest.h>

#include "cuop/ops/matmul/matmul_kernels.h"

namespace cuop::kernels {
namespace {

using backend::Kernel;
using backend::KernelType;

TEST(TileProduct, NeedsTheSharedMemoryOfItsStages) {
  const Kernel kernel{KernelType::kTiled, 128, 256, 5};
  EXPECT_EQ(product_obstacle(kernel, DType::kFloat32, {}, 0), "");
  EXPECT_EQ(
      product_obstacle(kernel, DType::kFloat32, {.capability = 86, .shared_bytes = 99 << 10}, 0),
      "5 stages of 128-wide panels of float32 need up to 102400 bytes of shared memory; a block "
      "has 101376");
}

TEST(TileProduct, TheFirstObstacleIsTheOneThatIsTold) {
  const auto obstacle = [](int tile, int threads, int64_t max_registers) {
    const Kernel kernel{KernelType::kTiled, tile, threads, 2};
    return product_obstacle(kernel, DType::kFloat32, {}, max_registers);
  };
  EXPECT_EQ(obstacle(128, 256, 0), "");
  EXPECT_NE(obstacle(128, 256, 32).find("max_registers is 32"), std::string::npos);
  EXPECT_NE(obstacle(17, 256, 0), "");  // no tile of that width
  EXPECT_EQ(obstacle(17, 256, 32), obstacle(17, 256, 0));
  // A tile that the threads cannot share.
  EXPECT_EQ(product_obstacle({KernelType::kSimple, 8, 256, 1}, DType::kFloat32, {}, 0),
            "a 8-wide tile has 64 elements, fewer than the 256 threads");
}

}  // namespace
}  // namespace cuop::kernels
