// The kernels of softmax, normalisation, pooling and stencils, compiled and held to their budgets
// of registers. No GPU is needed for that.
#include <gtest/gtest.h>

#include "cuop/jit/cuda/row_plan.h"
#include "cuop/ops/norm/norm_kernels.h"
#include "cuop/ops/poisson/row_kernels.h"
#include "cuop/ops/pool/pool_kernels.h"
#include "cuop/ops/softmax/softmax_kernels.h"
#include "cuop/ops/stencil/stencil_kernels.h"
#include "tests/jit/resources.h"

namespace cuop::kernels {
namespace {

/// bfloat16 is float16 but for its conversion.
constexpr DType kFloats[] = {DType::kFloat16, DType::kFloat32, DType::kFloat64};
/// From a few elements to more than a block keeps, even and odd.
constexpr int64_t kLengths[] = {64, 333, 4096, 8192, 10000, 20480, 100000};

class RowKernelBudget : public test::KernelBudget {};

int row_frame(DType dtype) { return dtype == DType::kFloat64 ? 192 : 0; }

/// Blocks that are to be resident together share the registers of a multiprocessor.
int budget(const jit::RowPlan& plan) {
  return plan.resident > 1 ? 65536 / (plan.threads() * plan.resident) : 128;
}

TEST_F(RowKernelBudget, Softmax) {
  for (const DType dtype : kFloats) {
    for (const bool is_log : {false, true}) {
      for (const int64_t length : kLengths) {
        const jit::RowPlan plan = softmax_rows_plan(length, dtype, {});
        // The most that is kept of float16 takes all registers and on one architecture one more.
        const bool is_full = dtype == DType::kFloat16 && length == 20480;
        expect_within(softmax_rows_kernel(dtype, plan, is_log), budget(plan),
                      is_full ? 8 : row_frame(dtype));
      }
      for (const int lanes : {1, 8}) {
        expect_within(softmax_columns_kernel(dtype, lanes, is_log), 96, row_frame(dtype));
      }
    }
  }
}

TEST_F(RowKernelBudget, Norms) {
  for (const DType dtype : kFloats) {
    for (const int64_t length : kLengths) {
      const jit::RowPlan plan = norm_rows_plan(length, 1, dtype, {});
      for (const bool is_centred : {false, true}) {
        expect_within(norm_rows_kernel(dtype, plan, is_centred, NormGroup::kNone), budget(plan),
                      row_frame(dtype));
      }
    }
    for (const int64_t inner : {3, 16}) {
      const jit::RowPlan plan = norm_rows_plan(48 * inner, inner, dtype, {});
      expect_within(norm_rows_kernel(dtype, plan, true, NormGroup::kNarrow), 96, row_frame(dtype));
      expect_within(norm_rows_kernel(dtype, plan, true, NormGroup::kWide), 96, row_frame(dtype));
    }
  }
}

TEST_F(RowKernelBudget, Pools) {
  for (const DType dtype : {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64,
                            DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64,
                            DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    for (PoolForm form :
         {PoolForm{true, false, 2, 2, 2, true}, PoolForm{true, is_floating(dtype)}}) {
      expect_within(pool_kernel(dtype, form), 72);
      form.is_max = false;
      if (is_floating(dtype)) expect_within(pool_kernel(dtype, form), 72);
    }
  }
}

TEST_F(RowKernelBudget, Stencils) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kComplex128}) {
    // Wrapping around divides 64-bit integers, which is a routine too.
    for (const bool is_first : {true, false}) {
      expect_within(stencil_kernel(dtype, true, is_first), is_first ? 64 : 128, 16);
      expect_within(stencil_kernel(dtype, false, is_first), 80, 16);
    }
    if (dtype != DType::kComplex128) {
      TapList taps{1, 1, {{-1, 0}, {0, -1}, {0, 0}, {0, 1}, {1, 0}}};
      expect_within(sweep_kernel(dtype, taps, false), 128);
      expect_within(sweep_kernel(dtype, taps, true), 128, 16);
      for (const int64_t row : {-2, 2}) taps.taps.push_back({row, -2});
      taps.row_radius = 2;
      expect_within(sweep_kernel(dtype, taps, false), 128);
      expect_within(sweep_kernel(dtype, taps, true), 128, 16);
    }
    if (is_complex(dtype)) continue;
    expect_within(jacobi_kernel(dtype, false), 64, 16);
    expect_within(jacobi_kernel(dtype, true), 64, 16);
    for (const bool has_norms : {false, true}) {
      expect_within(jacobi_sweep_kernel(dtype, false, has_norms), 128);
      expect_within(jacobi_sweep_kernel(dtype, true, has_norms), 128, 32);
    }
    for (const RowKernel kernel :
         {RowKernel::kRelax, RowKernel::kResidual, RowKernel::kDots, RowKernel::kResample}) {
      expect_within(row_kernel(kernel, dtype), 64, 16);
    }
  }
}

}  // namespace
}  // namespace cuop::kernels
