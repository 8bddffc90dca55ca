#include "cuop/ops/poisson/column_solver.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "tests/noise.h"
#include "tests/values.h"

namespace cuop::kernels {
namespace {

using test::noise;
using Column = std::vector<long double>;

/// Of every size from that of a grid's slowest mode on; the first is 0 where `has_open`.
std::vector<double> shifts_of(int64_t columns, bool has_open, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> exponent(-9.0, 0.6);
  std::vector<double> shifts(static_cast<size_t>(columns));
  for (double& each : shifts) each = std::pow(10.0, exponent(random));
  if (has_open) shifts[0] = 0.0;
  return shifts;
}

/// By elimination in long double, without a difference as well.
Column solved(Column f, long double shift, bool has_zero_ends) {
  const size_t rows = f.size();
  Column multipliers(rows);
  long double rest = has_zero_ends ? 1.0L : 0.0L, made = 0.0L;
  for (size_t i = 0; i < rows; ++i) {
    const long double above = shift + rest;
    const long double diagonal = above + (has_zero_ends || i + 1 < rows ? 1.0L : 0.0L);
    multipliers[i] = 1.0L / diagonal;
    rest = above / diagonal;
    f[i] = made = (made - f[i]) / diagonal;
  }
  for (size_t i = rows - 1; i-- > 0;) f[i] += multipliers[i] * f[i + 1];
  return f;
}

/// The second difference with the shift, less f, in parts of the largest number that it is made of.
long double residual(const Column& u, const Column& f, long double shift, bool has_zero_ends) {
  const size_t rows = u.size();
  long double worst = 0.0L, scale = 0.0L;
  for (size_t i = 0; i < rows; ++i) {
    long double sides = 2.0L, around = 0.0L;
    if (i > 0) around += u[i - 1];
    if (i + 1 < rows) around += u[i + 1];
    if (!has_zero_ends) sides -= (i == 0) + (i + 1 == rows);
    worst = std::max(worst, std::fabs(around - (sides + shift) * u[i] - f[i]));
    scale = std::max({scale, std::fabs(u[i]), std::fabs(f[i])});
  }
  return worst / scale;
}

Column column_of(const Tensor& x, int64_t column, double factor) {
  Column found;
  for (const double each : test::values(select(x, 1, column))) found.push_back(factor * each);
  return found;
}

void expect_solved(const ColumnEquations& equations, const Tensor& f, const Tensor& u,
                   const Tensor& given, double tolerance) {
  const bool has_zero_ends = equations.ends == AxisEnds::kZero;
  solve_columns(equations, f, u);
  for (int64_t j = 0; j < f.shape(1); ++j) {
    const double shift = equations.shifts[static_cast<size_t>(j)];
    Column wanted = column_of(given, j, equations.factor);
    const Column made = column_of(u, j, 1.0);
    if (!has_zero_ends && shift == 0.0) {
      const auto rows = static_cast<long double>(made.size());
      long double mean_f = 0.0L, mean_u = 0.0L, most = 1.0L;
      for (size_t i = 0; i < made.size(); ++i) {
        mean_f += wanted[i] / rows;
        mean_u += made[i] / rows;
        most = std::max(most, std::fabs(made[i]));
      }
      for (long double& each : wanted) each -= mean_f;
      EXPECT_LE(residual(made, wanted, 0.0L, false), tolerance) << "column " << j;
      EXPECT_NEAR(static_cast<double>(mean_u / most), equations.mean / static_cast<double>(most),
                  tolerance);
      continue;
    }
    const Column expected = solved(wanted, shift, has_zero_ends);
    long double scale = 0.0L;
    for (const long double each : expected) scale = std::max(scale, std::fabs(each));
    for (size_t i = 0; i < made.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(made[i] / scale), static_cast<double>(expected[i] / scale),
                  tolerance)
          << "row " << i << " of " << made.size() << ", column " << j << ", shift " << shift;
    }
  }
}

TEST(ColumnSolver, GridsOfEverySize) {
  unsigned seed = 0;
  for (const AxisEnds ends : {AxisEnds::kZero, AxisEnds::kZeroFlux}) {
    for (const int64_t rows : {1, 2, 3, 17, 300}) {
      for (const int64_t columns : {1, 15, 16, 17, 70}) {
        const bool has_open = ends == AxisEnds::kZeroFlux && columns > 1;
        const ColumnEquations equations{ends, 0.25, shifts_of(columns, has_open, ++seed), 3.0};
        const Tensor f = noise({rows, columns}, DType::kFloat64, seed);
        expect_solved(equations, f, empty(f.shape(), f.dtype()), f, 1e-12);
        const Tensor g = cast(f, DType::kFloat32);
        expect_solved(equations, g, empty(g.shape(), g.dtype()), g, 3e-7 * (1 + 4.0 * has_open));
      }
    }
  }
}

TEST(ColumnSolver, SmallShiftsOnLongColumnsLoseNoDigits) {
  // By 2 + shift, which a double holds to 2e-16, a shift of 1e-9 would be known to 2e-7.
  const ColumnEquations equations{AxisEnds::kZeroFlux, 1.0, std::vector<double>(16, 1e-9), 0.0};
  const Tensor f = ones({2000, 16}, DType::kFloat64);
  const Tensor u = empty(f.shape(), f.dtype());
  solve_columns(equations, f, u);
  for (const double each : test::values(u)) ASSERT_NEAR(each, -1e9, 1e-3);
}

TEST(ColumnSolver, StridesAndInPlace) {
  for (const AxisEnds ends : {AxisEnds::kZero, AxisEnds::kZeroFlux}) {
    const ColumnEquations equations{ends, -2.0, shifts_of(40, true, 7), 0.5};
    const Tensor wide = noise({120, 80}, DType::kFloat64, 8),
                 tall = noise({40, 60}, wide.dtype(), 9);
    const Tensor every_other = slice(slice(wide, 0, 0, 120, 2), 1, 0, 80, 2);
    const Tensor turned = swap_axes(tall, 0, 1);
    // The column without a shift, between zero ends, is one as any.
    expect_solved(equations, every_other, turned, clone(every_other), 1e-12);
    const Tensor given = clone(turned);
    expect_solved(equations, turned, turned, given, 1e-12);
    const Tensor rest = slice(slice(wide, 0, 1, 120, 2), 1, 1, 80, 2);
    const Tensor before = clone(rest);
    solve_columns(equations, every_other, every_other);
    EXPECT_TRUE(test::same_bits(rest, before));
  }
}

TEST(ColumnSolver, NothingToSolve) {
  for (const Shape& shape : {Shape{0, 3}, Shape{3, 0}}) {
    const Tensor f = empty(shape, DType::kFloat64);
    solve_columns({AxisEnds::kZero, 1.0, std::vector<double>(3, 1.0), 0.0}, f, f);
  }
}

}  // namespace
}  // namespace cuop::kernels
