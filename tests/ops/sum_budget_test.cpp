// The kernels of sums, compiled for three GPUs. Frames are for divisions of 64-bit numbers, which
// are calls, and for what is indexed at run time.
#include <gtest/gtest.h>

#include "cuop/ops/reduce/reduce_kernels.h"
#include "tests/jit/resources.h"

namespace cuop::kernels {
namespace {

using test::KernelBudget;

int sum_frame(bool is_linear) { return is_linear ? 16 : 128; }
constexpr int kWaiting = 256;  // sums that wait to be merged
constexpr int kSums = 2048;    // a superaccumulator and copies of it, while it is rounded

TEST_F(KernelBudget, CompensatedSumsKeepTheirBudgets) {
  using Kind = WideSumForm::Kind;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const DType element = dtype == DType::kFloat64 ? dtype : DType::kFloat32;
    for (const bool is_linear : {true, false}) {
      for (const int team : {1, 32}) {
        expect_within(wide_sum_kernel(
                          {Kind::kShortRows, dtype, element, is_linear, team, false, false, dtype}),
                      64, sum_frame(is_linear));
      }
      expect_within(
          wide_sum_kernel({Kind::kRows, dtype, element, is_linear, 1, false, false, dtype}), 64,
          sum_frame(is_linear));
      expect_within(
          wide_sum_kernel({Kind::kColumns, dtype, element, is_linear, 1, false, true, dtype}), 80,
          sum_frame(is_linear));
    }
    expect_within(joined_sum_kernel(dtype, false), 48, kWaiting);
  }
}

TEST_F(KernelBudget, ExactSumsKeepTheirBudgets) {
  using Kind = WideSumForm::Kind;
  for (const DType dtype : {DType::kInt32, DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    const bool is_whole = is_integer(dtype);
    const DType element = is_whole ? DType::kInt64 : DType::kFloat64;
    const DType result = is_whole ? DType::kFloat64 : dtype;
    for (const bool is_linear : {true, false}) {
      for (const bool by_columns : {true, false}) {
        if (by_columns && !is_linear) continue;
        expect_within(wide_sum_kernel(
                          {Kind::kExact, dtype, element, is_linear, 8, by_columns, false, result}),
                      64, kSums);
      }
    }
    expect_within(wide_sum_kernel({Kind::kExact, dtype, element, true, 256, false, true, result}),
                  64, kSums);
  }
}

TEST_F(KernelBudget, StatesKeepTheirBudgets) {
  for (const ReduceKind kind :
       {ReduceKind::kCompensatedSum, ReduceKind::kExactSum, ReduceKind::kMoments}) {
    expect_within(merge_states_kernel(kind), 64, 16);
    for (const DType value : {DType::kFloat32, DType::kFloat64}) {
      expect_within(finish_states_kernel(kind, value), 64,
                    kind == ReduceKind::kExactSum ? kSums : 16);
    }
  }
}

TEST_F(KernelBudget, RunningSumsKeepTheirBudgets) {
  for (const bool by_tiles : {true, false}) {
    for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
      expect_within(scan_kernel(dtype, dtype, by_tiles), 80);
    }
    expect_within(scan_kernel(DType::kBool, DType::kInt64, by_tiles), 80);
    expect_within(scan_kernel(DType::kUInt32, DType::kUInt64, by_tiles), 80);
    expect_within(scan_kernel(DType::kComplex64, DType::kComplex64, by_tiles), 128);
  }
}

}  // namespace
}  // namespace cuop::kernels
