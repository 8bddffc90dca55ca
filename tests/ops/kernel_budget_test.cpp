// The kernels of fixed text, compiled for three GPUs.
#include <gtest/gtest.h>

#include "cuop/ops/copy/copy_kernels.h"
#include "cuop/ops/fft/chirp.h"
#include "cuop/ops/fft/twiddle.h"
#include "cuop/ops/index/index_kernels.h"
#include "cuop/ops/random/random_kernels.h"
#include "cuop/ops/sparse/sparse_kernels.h"
#include "tests/jit/resources.h"

namespace cuop::kernels {
namespace {

using test::KernelBudget;

TEST_F(KernelBudget, RandomNumbersKeepTheirBudgets) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    expect_within(random_fill_kernel(dtype, Distribution::kNormal), 40);
    expect_within(random_fill_kernel(dtype, Distribution::kUniform), 40);
  }
  expect_within(random_fill_kernel(DType::kFloat64, Distribution::kNormal), 64);
  expect_within(random_fill_kernel(DType::kFloat64, Distribution::kUniform), 40);
  for (const DType dtype : {DType::kInt8, DType::kUInt16, DType::kInt32, DType::kUInt64}) {
    expect_within(random_fill_kernel(dtype, Distribution::kInteger), 48);
  }
}

TEST_F(KernelBudget, TransposedCopiesKeepTheirBudgets) {
  for (const int64_t itemsize : {1, 2, 4, 8, 16}) {
    expect_within(transposed_copy_kernel(itemsize), 64);
  }
}

TEST_F(KernelBudget, OffsetsKeepTheirBudgets) {
  expect_within(list_indices_kernel(), 32);
  expect_within(count_mask_kernel(), 40);
  expect_within(list_mask_kernel(false), 56);
  expect_within(list_mask_kernel(true), 56);
  expect_within(enter_offsets_kernel(), 32);
  expect_within(keep_last_offsets_kernel(), 32);
}

TEST_F(KernelBudget, TwiddlesKeepTheirBudgets) {
  expect_within(spectral::twiddle_kernel(DType::kComplex64), 40);
  expect_within(spectral::twiddle_kernel(DType::kComplex128), 40);
}

TEST_F(KernelBudget, ChirpsKeepTheirBudgets) {
  expect_within(spectral::chirp_kernel(DType::kComplex64), 48);
  expect_within(spectral::chirp_kernel(DType::kComplex128), 48);
}

TEST_F(KernelBudget, SearchesOfRowsKeepTheirBudgets) {
  for (const DType index : {DType::kInt32, DType::kInt64}) {
    expect_within(row_search_kernel(index, RowSearchKind::kNumbers), 32);
    expect_within(row_search_kernel(index, RowSearchKind::kPositions), 32);
  }
}

TEST_F(KernelBudget, CopiesByOffsetsKeepTheirBudgets) {
  for (const bool is_gather : {true, false}) {
    for (const int64_t itemsize : {1, 2, 4, 8, 16}) {
      const auto widest = static_cast<int>(16 / itemsize);
      expect_within(listed_copy_kernel({itemsize, 1, 1, is_gather}), 32);
      expect_within(listed_copy_kernel({itemsize, widest, 2, is_gather}), 64);
    }
    for (const int axes : {0, 3, 4}) {
      expect_within(listed_copy_kernel({4, 1, axes, is_gather}), 64);
      expect_within(listed_copy_kernel({4, 4, axes, is_gather, true}), 72);
    }
  }
}

}  // namespace
}  // namespace cuop::kernels
