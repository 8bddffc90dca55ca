// The kernels of sorting, compiled for three GPUs.
#include <gtest/gtest.h>

#include "cuop/ops/sort/search_kernels.h"
#include "cuop/ops/sort/sort_kernels.h"
#include "tests/jit/resources.h"

namespace cuop::kernels {
namespace {

using test::KernelBudget;

TEST_F(KernelBudget, SortingKeepsItsBudgets) {
  for (const DType dtype : {DType::kInt8, DType::kFloat16, DType::kFloat32, DType::kInt64}) {
    for (const bool gives_positions : {false, true}) {
      expect_within(sort_tiles_kernel({dtype, gives_positions, false}), 80, 64);
      expect_within(merge_runs_kernel({dtype, gives_positions, false}), 80, 64);
      expect_within(count_digits_kernel({dtype, gives_positions, false}), 48);
      // Two blocks of a multiprocessor, each thread with 16 records on their way.
      expect_within(sort_by_digit_kernel({dtype, gives_positions, false}), 128);
    }
    expect_within(mark_runs_kernel(dtype), 32);
    expect_within(search_sorted_kernel(dtype), 32);
  }
  expect_within(merge_runs_kernel({DType::kFloat64, true, true}), 80, 64);
  expect_within(sort_by_digit_kernel({DType::kFloat64, true, true}), 96);
}

}  // namespace
}  // namespace cuop::kernels
