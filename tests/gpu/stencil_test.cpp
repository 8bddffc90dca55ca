// Stencils and Jacobi's method on a GPU beside the CPU's: cells of real numbers are the same bits.
#include "cuop/ops/stencil/stencil.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cuop/ops/index/arrange.h"
#include "cuop/ops/index/view.h"
#include "tests/gpu/compare.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/guarded.h"

namespace cuop {
namespace {

using test::expect_same;
using test::Guarded;
using test::random_tensor;

constexpr Boundary kBoundaries[] = {Boundary::kZero, Boundary::kPeriodic};

class GpuStencil : public GpuTest {};

double largest_part(const Tensor& t) {
  const Tensor wide = cast(as_real(t), DType::kFloat64);
  double largest = 0.0;
  for (int64_t i = 0; i < wide.size(); ++i) {
    largest = std::max(largest, std::abs(wide.data<double>()[i]));
  }
  return largest;
}

TEST_F(GpuStencil, EveryDtypeAndBoundary) {
  for (const DType dtype : kFloatsAndComplex) {
    for (const Shape& shape :
         {Shape{1, 1}, Shape{7, 1}, Shape{1, 33}, Shape{50, 150}}) {  // inner tiles too
      // 121 weights are more than one launch takes.
      for (const Shape& size : {Shape{1, 1}, Shape{3, 3}, Shape{5, 1}, Shape{11, 11}}) {
        for (const Boundary boundary : kBoundaries) {
          const Tensor grid = random_tensor(shape, dtype, 1);
          const DType real = real_dtype(dtype);
          for (const Tensor& kernel :
               {random_tensor(size, real, 2), random_tensor(size, dtype, 3)}) {
            for (const int64_t iterations : {1, 2, 3}) {
              const Tensor wanted = stencil2d(grid, kernel, boundary, iterations);
              // g++ 12 contracts complex products on the CPU, whatever it is told.
              const double ulps = is_complex(dtype) ? 16.0 : 0.0;
              expect_same(
                  stencil2d(to_device(grid, kGpu), to_device(kernel, kGpu), boundary, iterations),
                  wanted, ulps, cat(dtype, ' ', shape, " kernel ", size, " times ", iterations),
                  largest_part(wanted));
            }
          }
        }
      }
    }
  }
}

TEST_F(GpuStencil, NoWeightsAndNoIterations) {
  const Tensor grid = random_tensor({5, 6}, DType::kFloat32, 1), there = to_device(grid, kGpu);
  expect_same(stencil2d(there, zeros({3, 3})), zeros({5, 6}), 0.0, "no weights");
  expect_same(stencil2d(there, ones({3, 3}), Boundary::kZero, 0), grid, 0.0, "not at all");
  EXPECT_EQ(stencil2d(zeros({0, 6}, DType::kFloat32, kGpu), ones({3, 3})).shape(), (Shape{0, 6}));
}

TEST_F(GpuStencil, RowsWithHalosAreTheWholeGridsRows) {
  const Tensor grid = to_device(random_tensor({40, 65}, DType::kFloat32, 1), kGpu);
  const Tensor kernel = random_tensor({5, 3}, DType::kFloat32, 2);
  for (const Boundary boundary : kBoundaries) {
    const Tensor whole = stencil2d(grid, kernel, boundary);
    const Tensor part = stencil2d_rows(slice(grid, 0, 8, 22), kernel, boundary);
    expect_same(part, to_device(slice(whole, 0, 10, 20), kCpu), 0.0, "rows 10 to 20");
  }
}

TEST_F(GpuStencil, SeveralSweepsInOnePass) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kComplex64}) {
    for (const Shape& shape : {Shape{150, 300}, Shape{3, 129}, Shape{64, 4}}) {
      for (const Shape& size : {Shape{3, 3}, Shape{5, 3}, Shape{1, 5}, Shape{3, 1}, Shape{5, 5}}) {
        for (const Boundary boundary : kBoundaries) {
          const Tensor grid = random_tensor(shape, dtype, 1),
                       kernel = random_tensor(size, dtype, 2);
          const Tensor wanted = stencil2d(grid, kernel, boundary, 9);
          expect_same(stencil2d(to_device(grid, kGpu), kernel, boundary, 9), wanted,
                      is_complex(dtype) ? 64.0 : 0.0, cat(dtype, ' ', shape, " kernel ", size),
                      largest_part(wanted));
        }
      }
    }
  }
}

TEST_F(GpuStencil, RowsAreSweptSeveralTimes) {
  constexpr int64_t kHeight = 90;
  const Tensor grid = random_tensor({kHeight, 140}, DType::kFloat32, 1);
  const Tensor kernel = random_tensor({3, 3}, DType::kFloat32, 2);
  const int64_t most = row_sweeps_at_once(to_device(grid, kGpu), kernel);
  ASSERT_GT(most, 1);
  const Tensor above = zeros({most, 140}), all = concatenate(std::array{above, grid, above});
  for (int64_t sweeps = 1; sweeps <= most; ++sweeps) {
    const Tensor whole = stencil2d(grid, kernel, Boundary::kZero, sweeps);
    // The first rows, some in the middle, the last.
    for (const auto& [low, high] : {std::pair{0, 20}, std::pair{3, 80}, std::pair{40, 90}}) {
      const Tensor padded = slice(all, 0, most + low - sweeps, most + high + sweeps);
      const Tensor part = stencil2d_rows(to_device(padded, kGpu), kernel, Boundary::kZero, nullptr,
                                         {sweeps, -low, kHeight - low});
      expect_same(part, slice(whole, 0, low, high), 0.0,
                  cat(sweeps, " sweeps of rows ", low, " to ", high));
    }
  }
  EXPECT_THROW(stencil2d_rows(to_device(all, kGpu), kernel, Boundary::kZero, nullptr, {most + 1}),
               ExecutionError);
  EXPECT_THROW(stencil2d_rows(all, kernel, Boundary::kZero, nullptr, {2}), ExecutionError);
  EXPECT_THROW(stencil2d_rows(all, kernel, Boundary::kZero, nullptr, {0}), ExecutionError);
}

/// Columns [11, 150) of a wider tensor: rows lie apart, and packs begin nowhere or (from 12) there.
Tensor inside(const Tensor& grid, int64_t from = 11) { return slice(grid, 1, from, 150); }

TEST_F(GpuStencil, OnlySomeColumnsAreMade) {
  for (const DType dtype : kFloatsAndComplex) {
    for (const Shape& size : {Shape{3, 3}, Shape{5, 1}, Shape{11, 11}}) {
      const Tensor kernel = random_tensor(size, real_dtype(dtype), 2);
      const Tensor wide = to_device(random_tensor({40, 160}, dtype, 1), kGpu);
      const int64_t most = std::min<int64_t>(3, row_sweeps_at_once(wide, kernel));
      for (const int64_t sweeps : {int64_t{1}, most}) {
        const int64_t height = 40 - 2 * (size[0] / 2) * sweeps;
        for (const int64_t from : {11, 12}) {
          const Tensor padded = inside(wide, from);
          const int64_t width = padded.shape(1);
          for (const Boundary boundary : kBoundaries) {
            const Tensor whole =
                stencil2d_rows(contiguous(padded), kernel, boundary, nullptr, {sweeps});
            for (const auto& [low, high] : {std::pair<int64_t, int64_t>{0, 5},
                                            {3, 131},
                                            {131, 999},
                                            {0, INT64_MAX},
                                            {7, 7}}) {
              const Tensor around = full({height, 160}, 7.0, dtype, kGpu);
              const Tensor out = inside(around, from);
              const Tensor expected = clone(around);
              const int64_t end = std::min(high, width);
              copy_into(slice(inside(expected, from), 1, low, end), slice(whole, 1, low, end));
              stencil2d_rows(padded, kernel, boundary, &out,
                             {.sweeps = sweeps, .first_made = low, .last_made = high});
              expect_same(around, to_device(expected, kCpu), 0.0,
                          cat(dtype, size, " columns ", low, " to ", high, " from ", from));
            }
          }
        }
      }
    }
  }
}

TEST_F(GpuStencil, JacobiMakesSomeColumnsAndTheirNorms) {
  constexpr int64_t kHeight = 70;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const int64_t sweeps : {int64_t{1}, jacobi_sweeps_at_once(kGpu)}) {
      const Tensor u = to_device(random_tensor({kHeight + 2 * sweeps, 160}, dtype, 1), kGpu);
      const Tensor f = to_device(random_tensor({kHeight + 2 * sweeps - 2, 160}, dtype, 2), kGpu);
      const auto swept = [&](const Tensor* out, int64_t low, int64_t high) {
        return jacobi2d_rows(inside(u), inside(f), 0.5, Boundary::kZero, out,
                             {.sweeps = sweeps, .first_made = low, .last_made = high});
      };
      const JacobiSweep whole = jacobi2d_rows(contiguous(inside(u)), contiguous(inside(f)), 0.5,
                                              Boundary::kZero, nullptr, {sweeps});
      const Tensor around = full({kHeight, 160}, 7.0, dtype, kGpu), out = inside(around);
      double sum = 0.0;
      // Others are left alone, so that the parts make the whole in any order.
      for (const auto& [low, high] :
           {std::pair<int64_t, int64_t>{13, 120}, {0, 13}, {125, 999}, {120, 125}, {125, 125}}) {
        sum += swept(&out, low, high).squared_norm();
      }
      expect_same(out, to_device(whole.u, kCpu), 0.0, cat(dtype, ' ', sweeps));
      EXPECT_NEAR(sum, whole.squared_norm(), 1e-12 * sum);
      const Tensor beside = slice(to_device(around, kCpu), 1, 0, 11);
      expect_same(beside, full(beside.shape(), 7.0, dtype), 0.0, "beside the view");
      EXPECT_EQ(swept(&out, 20, 20).squared_norm(), 0.0);
    }
  }
}

TEST_F(GpuStencil, ViewsAndOutputs) {
  const Tensor grid = random_tensor({30, 40}, DType::kFloat64, 1), there = to_device(grid, kGpu);
  const Tensor kernel = random_tensor({3, 3}, DType::kFloat64, 2);
  expect_same(stencil2d(transpose(there), kernel, Boundary::kPeriodic, 4),
              stencil2d(transpose(grid), kernel, Boundary::kPeriodic, 4), 0.0, "transposed");
  for (const DType dtype : kFloatsAndComplex) {
    const Guarded out({13, 35}, dtype, kGpu);
    stencil2d(ones({13, 35}, dtype, kGpu), ones({3, 3}), Boundary::kZero, 2, &out.tensor());
    out.expect_intact(cat(dtype));
  }
}

/// So many sweeps give the CPU's bits in every dtype and boundary, and its norms.
void expect_jacobi_as_on_the_cpu(const Shape& shape, int64_t sweeps) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const Boundary boundary : kBoundaries) {
      const Tensor u = random_tensor(shape, dtype, 1), rhs = random_tensor(shape, dtype, 2);
      const JacobiOptions options{
          .dx = 0.25, .boundary = boundary, .iterations = sweeps, .tolerance = 0.0};
      const JacobiResult here = jacobi2d(u, rhs, options);
      const JacobiResult there = jacobi2d(to_device(u, kGpu), to_device(rhs, kGpu), options);
      const std::string what = cat(dtype, ' ', shape);
      expect_same(there.u, here.u, 0.0, what);
      EXPECT_EQ(there.sweeps, sweeps);
      EXPECT_NEAR(there.update_norm, here.update_norm, 1e-12 * here.update_norm) << what;
      EXPECT_NEAR(there.residual_norm, here.residual_norm, 1e-12 * here.residual_norm) << what;
    }
  }
}

TEST_F(GpuStencil, Jacobi) {
  for (const Shape& shape : {Shape{1, 1}, Shape{2, 300}, Shape{31, 45}}) {
    expect_jacobi_as_on_the_cpu(shape, 37);
  }
}

TEST_F(GpuStencil, JacobiSweepsSeveralTimesInOnePass) {
  for (const Shape& shape : {Shape{150, 300}, Shape{3, 129}, Shape{99, 4}}) {
    expect_jacobi_as_on_the_cpu(shape, 11);
  }
}

TEST_F(GpuStencil, JacobiRowsAreSweptSeveralTimes) {
  constexpr int64_t kHeight = 90, kWidth = 140;
  const int64_t most = jacobi_sweeps_at_once(kGpu);
  ASSERT_GT(most, 1);
  const auto with_rows = [&](const Tensor& grid) {
    const Tensor outside = zeros({most, kWidth}, grid.dtype());
    return to_device(concatenate(std::array{outside, grid, outside}), kGpu);
  };
  const Tensor u = random_tensor({kHeight, kWidth}, DType::kFloat64, 1);
  const Tensor rhs = random_tensor({kHeight, kWidth}, DType::kFloat64, 2);
  const Tensor all_u = with_rows(u), all_rhs = with_rows(rhs);
  for (int64_t sweeps = 1; sweeps <= most; ++sweeps) {
    const JacobiOptions options{.dx = 0.5, .iterations = sweeps, .tolerance = 0.0};
    const JacobiResult whole = jacobi2d(u, rhs, options);
    double last_norm = 0.0;
    for (const auto& [low, high] : {std::pair{0, 31}, std::pair{31, 80}, std::pair{80, 90}}) {
      const Tensor padded = slice(all_u, 0, most + low - sweeps, most + high + sweeps);
      const Tensor f = slice(all_rhs, 0, most + low - sweeps + 1, most + high + sweeps - 1);
      const JacobiSweep part =
          jacobi2d_rows(padded, f, 0.5, Boundary::kZero, nullptr, {sweeps, -low, kHeight - low});
      expect_same(part.u, slice(whole.u, 0, low, high), 0.0, cat(sweeps, " sweeps from ", low));
      const Tensor norms = reshape(to_device(part.row_norms, kCpu), {sweeps, high - low});
      for (int64_t i = 0; i < high - low; ++i) {
        last_norm += norms.data<double>()[(sweeps - 1) * (high - low) + i];
      }
    }
    EXPECT_NEAR(std::sqrt(last_norm), whole.update_norm, 1e-12 * whole.update_norm);
  }
  const Tensor small = zeros({2, kWidth}, DType::kFloat64, kGpu);
  EXPECT_THROW(jacobi2d_rows(all_u, all_rhs, 0.5, Boundary::kZero, nullptr, {most + 1}), Error);
  EXPECT_THROW(jacobi2d_rows(slice(all_u, 0, 0, 4), small, 0.5, Boundary::kZero, nullptr, {3}),
               ShapeError);
  EXPECT_THROW(jacobi2d_rows(zeros({4, 3}), zeros({2, 3}), 0.5, Boundary::kZero, nullptr, {2}),
               ExecutionError);
}

TEST_F(GpuStencil, JacobiNormsOfSomeColumns) {
  constexpr int64_t kHeight = 70, kWidth = 301;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const int64_t sweeps : {int64_t{1}, jacobi_sweeps_at_once(kGpu)}) {
      const Tensor padded = random_tensor({kHeight + 2 * sweeps, kWidth}, dtype, 1);
      const Tensor rhs = random_tensor({kHeight + 2 * sweeps - 2, kWidth}, dtype, 2);
      const auto swept = [&](int64_t low, int64_t high) {
        return jacobi2d_rows(to_device(padded, kGpu), to_device(rhs, kGpu), 0.5, Boundary::kZero,
                             nullptr, {.sweeps = sweeps, .first_column = low, .last_column = high});
      };
      const JacobiSweep all = swept(0, INT64_MAX);
      double sum = 0.0;
      for (const auto& [low, high] :
           {std::pair{0, 13}, std::pair{13, 14}, std::pair{14, 290}, std::pair{290, 400}}) {
        const JacobiSweep some = swept(low, high);
        expect_same(some.u, to_device(all.u, kCpu), 0.0, "cells do not depend on it");
        const double part = some.squared_norm();
        EXPECT_GT(part, 0.0);
        sum += part;
      }
      EXPECT_NEAR(sum, all.squared_norm(), 1e-12 * sum);
      EXPECT_EQ(swept(20, 20).squared_norm(), 0.0);
    }
  }
}

TEST_F(GpuStencil, JacobiStopsWhereTheCpuDoes) {
  const Tensor u = zeros({17, 17}, DType::kFloat64),
               rhs = random_tensor({17, 17}, DType::kFloat64, 2);
  const JacobiOptions options{.dx = 0.1, .iterations = 5000, .tolerance = 1e-7};
  const JacobiResult here = jacobi2d(u, rhs, options);
  const JacobiResult there = jacobi2d(to_device(u, kGpu), to_device(rhs, kGpu), options);
  EXPECT_LT(here.sweeps, 5000);
  EXPECT_EQ(there.sweeps, here.sweeps);
  expect_same(there.u, here.u, 0.0, "converged");
}

TEST_F(GpuStencil, JacobiOfManyCellsStopsWhereTheCpuDoes) {
  ASSERT_TRUE(has_many_cells(260 * 256));
  const Tensor u = random_tensor({260, 256}, DType::kFloat32, 1);
  const Tensor rhs = random_tensor({260, 256}, DType::kFloat32, 2);
  const Tensor there_u = to_device(u, kGpu), there_rhs = to_device(rhs, kGpu);
  JacobiOptions options{.dx = 0.01, .iterations = 70, .tolerance = 0.0};
  const JacobiResult all = jacobi2d(there_u, there_rhs, options);
  EXPECT_EQ(all.sweeps, options.iterations);
  for (const int64_t sweeps : {1, 2, 31, 32, 33, 50, 64, 70}) {
    const JacobiResult here =
        jacobi2d(u, rhs, {.dx = 0.01, .iterations = sweeps, .tolerance = 0.0});
    options.tolerance = here.update_norm * (1.0 + 1e-9);
    const JacobiResult there = jacobi2d(there_u, there_rhs, options);
    EXPECT_EQ(there.sweeps, sweeps);
    EXPECT_NEAR(there.update_norm, here.update_norm, 1e-12 * here.update_norm);
    expect_same(there.u, here.u, 0.0, cat("converged after ", sweeps));
  }
}

TEST_F(GpuStencil, JacobiRowsMeasureTheLastSweeps) {
  const int64_t most = jacobi_sweeps_at_once(kGpu);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const Tensor padded = to_device(random_tensor({40 + 2 * most, 70}, dtype, 1), kGpu);
    const Tensor rhs = to_device(random_tensor({38 + 2 * most, 70}, dtype, 2), kGpu);
    for (const int64_t sweeps : {int64_t{1}, most}) {
      const auto swept = [&](int64_t measured) {
        RowSweeps rows{sweeps};
        rows.measured = measured;
        return jacobi2d_rows(slice(padded, 0, 0, 40 + 2 * sweeps),
                             slice(rhs, 0, 0, 38 + 2 * sweeps), 0.5, Boundary::kZero, nullptr,
                             rows);
      };
      const JacobiSweep all = swept(sweeps);
      const Tensor norms = reshape(all.row_norms, {sweeps, 40});
      for (const int64_t measured : {int64_t{0}, int64_t{1}, sweeps - 1}) {
        const JacobiSweep some = swept(measured);
        expect_same(some.u, to_device(all.u, kCpu), 0.0, "u");
        ASSERT_EQ(some.row_norms.size(), measured * 40);
        if (measured == 0) continue;
        expect_same(reshape(some.row_norms, {measured, 40}),
                    to_device(slice(norms, 0, sweeps - measured, sweeps), kCpu), 0.0, "norms");
      }
    }
  }
}

TEST_F(GpuStencil, JacobiRows) {
  const Tensor padded = random_tensor({12, 50}, DType::kFloat32, 1);
  const Tensor rhs = random_tensor({10, 50}, DType::kFloat32, 2);
  for (const Boundary boundary : kBoundaries) {
    const JacobiSweep here = jacobi2d_rows(padded, rhs, 0.5, boundary);
    const JacobiSweep there =
        jacobi2d_rows(to_device(padded, kGpu), to_device(rhs, kGpu), 0.5, boundary);
    expect_same(there.u, here.u, 0.0, "a sweep");
    EXPECT_NEAR(there.squared_norm(), here.squared_norm(), 1e-12 * here.squared_norm());
    const Tensor mine =
        poisson_residual_rows(to_device(padded, kGpu), to_device(rhs, kGpu), 0.5, boundary);
    EXPECT_EQ(mine.device(), kGpu);
    expect_same(mine, poisson_residual_rows(padded, rhs, 0.5, boundary), 1e-12, "residual");
  }
}

}  // namespace
}  // namespace cuop
