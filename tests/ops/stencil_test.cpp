#include "cuop/ops/stencil/stencil.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/random/random.h"
#include "cuop/ops/stencil/stencil_kernels.h"
#include "tests/error_of.h"
#include "tests/values.h"

namespace cuop {
namespace {

using test::same_bits;

Tensor grid_numbers(const Shape& shape, DType dtype, uint64_t seed) {
  Generator generator(seed);
  const RandomOptions options{.dtype = real_dtype(dtype), .generator = &generator};
  const Tensor parts = normal(shape, 0, 1, options);
  if (!is_complex(dtype)) return parts;
  return add(cast(parts, dtype),
             multiply(normal(shape, 0, 1, options), std::complex<double>(0, 1)));
}

Tensor halo(const Tensor& grid, int64_t rows, Boundary boundary) {
  const std::pair<int64_t, int64_t> widths[] = {{rows, rows}, {0, 0}};
  return pad(grid, widths, boundary == Boundary::kZero ? PadMode::kConstant : PadMode::kWrap);
}

class StencilSplit : public testing::TestWithParam<std::tuple<Boundary, DType>> {};

TEST_P(StencilSplit, RowBlocksWithHalosGiveTheBitsOfTheWhole) {
  const auto [boundary, dtype] = GetParam();
  const Tensor grid = grid_numbers({67, 45}, dtype, 1), kernel = grid_numbers({5, 3}, dtype, 2);
  const Tensor whole = stencil2d(grid, kernel, boundary);
  const Tensor padded = halo(grid, 2, boundary);
  for (const int64_t block : {1, 7, 32, 67}) {
    for (int64_t begin = 0; begin < 67; begin += block) {
      const int64_t end = std::min<int64_t>(67, begin + block);
      const Tensor part = stencil2d_rows(slice(padded, 0, begin, end + 4), kernel, boundary);
      ASSERT_TRUE(same_bits(part, slice(whole, 0, begin, end)));
    }
  }
}

TEST_P(StencilSplit, ManySweepsInAPassAreSweepsOneByOne) {
  const auto [boundary, dtype] = GetParam();
  for (const Shape& shape : {Shape{300, 21}, Shape{5, 64}, Shape{1, 1}, Shape{2, 3}}) {
    const Tensor kernel = grid_numbers({3, 5}, dtype, 4);
    Tensor step = grid_numbers(shape, dtype, 3);
    const Tensor fused = stencil2d(step, kernel, boundary, 19);
    for (int i = 0; i < 19; ++i) step = stencil2d(step, kernel, boundary);
    ASSERT_TRUE(same_bits(fused, step)) << shape;
  }
}

class JacobiSplit : public StencilSplit {};

TEST_P(JacobiSplit, SweepsOverBlocksAreTheWholeSweeps) {
  const auto [boundary, dtype] = GetParam();
  const Tensor u = grid_numbers({61, 34}, dtype, 5), rhs = grid_numbers({61, 34}, dtype, 6);
  Tensor current = u;
  double norm = 0;
  for (int sweep = 0; sweep < 9; ++sweep) {
    const Tensor padded = halo(current, 1, boundary);
    std::vector<Tensor> parts;
    std::vector<Tensor> norms;
    for (int64_t begin = 0; begin < 61; begin += 17) {
      const int64_t end = std::min<int64_t>(61, begin + 17);
      const JacobiSweep part =
          jacobi2d_rows(slice(padded, 0, begin, end + 2), slice(rhs, 0, begin, end), 0.5, boundary);
      parts.push_back(part.u);
      norms.push_back(part.row_norms);
    }
    current = concatenate(parts);
    norm = std::sqrt(JacobiSweep{current, concatenate(norms)}.squared_norm());
  }
  const JacobiResult whole = jacobi2d(u, rhs, {0.5, boundary, 9, 0.0});
  EXPECT_TRUE(same_bits(whole.u, current));
  EXPECT_EQ(whole.update_norm, norm);
  EXPECT_EQ(whole.sweeps, 9);
}

TEST_P(JacobiSplit, NormsOfSomeColumnsAreTheirs) {
  const auto [boundary, dtype] = GetParam();
  for (const int64_t width : {1, 2, 50}) {
    const Tensor padded = grid_numbers({7, width}, dtype, 5),
                 rhs = grid_numbers({5, width}, dtype, 6);
    const JacobiSweep all = jacobi2d_rows(padded, rhs, 0.5, boundary);
    const Tensor change = cast(subtract(all.u, slice(padded, 0, 1, 6)), DType::kFloat64);
    for (const auto& [low, high] : {std::pair<int64_t, int64_t>{0, width},
                                    {0, 1},
                                    {1, 2},
                                    {7, 33},
                                    {width - 1, width},
                                    {3, 3}}) {
      const JacobiSweep some =
          jacobi2d_rows(padded, rhs, 0.5, boundary, nullptr,
                        {.sweeps = 1, .first_column = low, .last_column = high});
      EXPECT_TRUE(same_bits(some.u, all.u));
      double expected = 0.0;
      for (int64_t i = 0; i < change.size(); ++i) {
        const double update = contiguous(change).data<double>()[i];
        if (i % width >= low && i % width < high) expected += update * update;
      }
      EXPECT_NEAR(some.squared_norm(), expected, 1e-13 * (1.0 + expected)) << low << ' ' << high;
    }
  }
  const Tensor padded = grid_numbers({7, 4}, dtype, 5), rhs = grid_numbers({5, 4}, dtype, 6);
  for (const auto& [low, high] : {std::pair<int64_t, int64_t>{-1, 3}, {3, 2}}) {
    EXPECT_THAT(test::error_of<ExecutionError>([&] {
                  jacobi2d_rows(padded, rhs, 0.5, boundary, nullptr,
                                {.sweeps = 1, .first_column = low, .last_column = high});
                }),
                testing::HasSubstr(cat("norms of columns ", low, " to ", high)));
  }
}

TEST_P(JacobiSplit, OnlySomeColumnsAreMade) {
  const auto [boundary, dtype] = GetParam();
  // Rows of views lie apart from each other.
  const Tensor u = slice(grid_numbers({7, 60}, dtype, 5), 1, 3, 53);
  const Tensor rhs = slice(grid_numbers({5, 60}, dtype, 6), 1, 3, 53);
  const JacobiSweep all = jacobi2d_rows(u, rhs, 0.5, boundary);
  const Tensor kernel = grid_numbers({3, 3}, dtype, 2),
               weighed = stencil2d_rows(u, kernel, boundary);
  const Tensor around = full({5, 60}, 7.0, dtype), out = slice(around, 1, 3, 53);
  const Tensor others = full({5, 60}, 7.0, dtype), other = slice(others, 1, 3, 53);
  double sum = 0.0;
  for (const auto& [low, high] : {std::pair<int64_t, int64_t>{11, 40}, {0, 11}, {45, 99}, {4, 4}}) {
    RowSweeps rows;
    rows.first_made = low;
    rows.last_made = high;
    sum += jacobi2d_rows(u, rhs, 0.5, boundary, &out, rows).squared_norm();
    stencil2d_rows(u, kernel, boundary, &other, rows);
  }
  for (const auto& [made, whole] : {std::pair{out, all.u}, std::pair{other, weighed}}) {
    EXPECT_TRUE(same_bits(slice(made, 1, 0, 40), slice(whole, 1, 0, 40)));
    EXPECT_TRUE(same_bits(slice(made, 1, 45, 50), slice(whole, 1, 45, 50)));
    EXPECT_TRUE(same_bits(slice(made, 1, 40, 45), full({5, 5}, 7.0, dtype)));
  }
  const JacobiSweep rest = jacobi2d_rows(u, rhs, 0.5, boundary, nullptr,
                                         {.sweeps = 1, .first_made = 40, .last_made = 45});
  EXPECT_NEAR(sum + rest.squared_norm(), all.squared_norm(), 1e-12 * all.squared_norm());
  for (const auto& [low, high] : {std::pair<int64_t, int64_t>{-1, 3}, {3, 2}}) {
    const RowSweeps wrong{.sweeps = 1, .first_made = low, .last_made = high};
    const auto said = testing::HasSubstr(cat("columns ", low, " to ", high, " were to be made"));
    EXPECT_THAT(test::error_of<ExecutionError>(
                    [&] { jacobi2d_rows(u, rhs, 0.5, boundary, nullptr, wrong); }),
                said);
    EXPECT_THAT(test::error_of<ExecutionError>(
                    [&] { stencil2d_rows(u, kernel, boundary, nullptr, wrong); }),
                said);
  }
}

TEST_P(JacobiSplit, RowsWithoutCellsHaveNoNorm) {
  const auto [boundary, dtype] = GetParam();
  full({3}, 7.0, DType::kFloat64);  // what memory held before does not count
  const Tensor padded = empty({5, 0}, dtype), rhs = empty({3, 0}, dtype);
  EXPECT_EQ(jacobi2d_rows(padded, rhs, 0.5, boundary).squared_norm(), 0.0);
  full({3}, 7.0, DType::kFloat64);
  const Tensor residual = poisson_residual_rows(padded, rhs, 0.5, boundary);
  EXPECT_TRUE(same_bits(residual, zeros({3}, DType::kFloat64)));
}

INSTANTIATE_TEST_SUITE_P(BoundariesAndTypes, StencilSplit,
                         testing::Combine(testing::Values(Boundary::kZero, Boundary::kPeriodic),
                                          testing::Values(DType::kFloat32, DType::kFloat64,
                                                          DType::kComplex64, DType::kComplex128)));
INSTANTIATE_TEST_SUITE_P(BoundariesAndTypes, JacobiSplit,
                         testing::Combine(testing::Values(Boundary::kZero, Boundary::kPeriodic),
                                          testing::Values(DType::kFloat32, DType::kFloat64)));

TEST(Stencil, AComplexKernelTurnsAComplexGrid) {
  const std::complex<double> i(0, 1);
  const Tensor grid = from_values<std::complex<double>>({1, 2}, {1.0 + i, 2.0 - i});
  const Tensor turn = from_values<std::complex<double>>({1, 1}, {i});
  const Tensor turned = stencil2d(grid, turn, Boundary::kZero, 3);
  EXPECT_EQ(turned.data<std::complex<double>>()[0], 1.0 - i);
  EXPECT_EQ(turned.data<std::complex<double>>()[1], -1.0 - 2.0 * i);
  EXPECT_THROW(stencil2d(ones({1, 2}), turn), DTypeError);
  EXPECT_THROW(stencil2d(ones({1, 2}, DType::kInt8), turn), DTypeError);
}

TEST(Stencil, ThreadsDoNotChangeBits) {
  const Tensor grid = grid_numbers({512, 40}, DType::kFloat32, 7);
  const Tensor kernel = from_values<double>({3, 3}, kLaplacian9pt);
  const Tensor many = stencil2d(grid, kernel, Boundary::kPeriodic, 10);
  backend::set_thread_count(1);
  const Tensor one = stencil2d(grid, kernel, Boundary::kPeriodic, 10);
  backend::set_thread_count(0);
  EXPECT_TRUE(same_bits(many, one));
}

template <class T>
std::vector<double> run_loops(isa::Level level) {
  const int64_t count = 77;
  const auto add = isa::choose(level, []<class L>(L) { return kernels::weighted_sum<L, T>(); });
  const auto& loops = isa::choose(level, []<class L>(L) -> const kernels::JacobiLoops<T>& {
    return kernels::jacobi_loops<L, T>();
  });
  std::vector<std::vector<T>> rows(12, std::vector<T>(count + 2));
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t j = 0; j < rows[r].size(); ++j) {
      rows[r][j] = static_cast<T>(std::sin(static_cast<double>(r * 31 + j * j)));
    }
  }
  std::vector<const T*> inputs;
  for (const auto& row : rows) inputs.push_back(row.data() + 1);
  std::vector<T> out(count);
  std::vector<double> all;
  add(inputs.data(), rows[3].data(), 12, count, out.data());
  all.insert(all.end(), out.begin(), out.end());
  all.push_back(
      loops.jacobi(inputs[0], inputs[1], inputs[2], inputs[3], T(0.3), count, out.data()));
  all.insert(all.end(), out.begin(), out.end());
  all.push_back(loops.residual(inputs[0], inputs[1], inputs[2], inputs[3], 2.5, count));
  return all;
}

TEST(StencilLoops, EveryInstructionSetGivesTheSameBits) {
  for (const isa::Level level : {isa::Level::kV3, isa::Level::kV4}) {
    if (!isa::is_supported(level)) continue;
    EXPECT_EQ(run_loops<float>(level), run_loops<float>(isa::Level::kBaseline));
    EXPECT_EQ(run_loops<double>(level), run_loops<double>(isa::Level::kBaseline));
  }
}

TEST(Jacobi, StopsAtTheFirstSweepBelowTheTolerance) {
  const Tensor rhs = grid_numbers({24, 24}, DType::kFloat64, 8);
  const Tensor start = zeros({24, 24}, DType::kFloat64);
  const JacobiResult result = jacobi2d(start, rhs, {1.0, Boundary::kZero, 100000, 1e-9});
  EXPECT_LT(result.update_norm, 1e-9);
  const JacobiResult before = jacobi2d(start, rhs, {1.0, Boundary::kZero, result.sweeps - 1, 0.0});
  EXPECT_GE(before.update_norm, 1e-9);
  const JacobiResult same = jacobi2d(start, rhs, {1.0, Boundary::kZero, result.sweeps, 0.0});
  EXPECT_TRUE(same_bits(result.u, same.u));
  EXPECT_LT(result.residual_norm, 1e-8);
}

}  // namespace
}  // namespace cuop
