// The kernels of sorting, compiled for three GPUs.
#include <gtest/gtest.h>

#include "cuop/ops/sort/sort_cuda_internal.h"
#include "tests/jit/resources.h"

namespace cuop::kernels {
namespace {

using test::KernelBudget;

TEST_F(KernelBudget, SortingKeepsItsBudgets) {
  for (const DType dtype : {DType::kInt8, DType::kFloat16, DType::kFloat32, DType::kInt64}) {
    for (const bool gives_positions : {false, true}) {
      expect_within(sort_tiles_kernel({dtype, gives_positions, false}), 80, 64);
      expect_within(merge_runs_kernel({dtype, gives_positions, false}), 80, 64);
    }
    expect_within(mark_runs_kernel(dtype), 32);
  }
  expect_within(merge_runs_kernel({DType::kFloat64, true, true}), 80, 64);
}

}  // namespace
}  // namespace cuop::kernels
