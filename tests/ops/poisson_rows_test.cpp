#include <gtest/gtest.h>

#include <cmath>

#include "cuop/core/error.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/poisson/row_sweeps.h"
#include "tests/noise.h"

namespace cuop {
namespace {

using test::noise;

constexpr AxisEnds kEnds[] = {AxisEnds::kZero, AxisEnds::kPeriodic, AxisEnds::kZeroFlux};

/// A grid of doubles by the definition, cell by cell.
struct Grid {
  FivePoint op;
  std::vector<double> u;

  double at(int64_t i, int64_t j) const { return u[static_cast<size_t>(i * op.width + j)]; }
  /// Neighbours and how much of the diagonal each brings; what is not there is zero.
  double applied(int64_t i, int64_t j) const { return diagonal(i, j) * at(i, j) - around(i, j); }
  double around(int64_t i, int64_t j) const {
    double sum = 0.0;
    each(i, j, [&](double weight, int64_t row, int64_t column, bool is_there) {
      if (is_there) sum += weight * at(row, column);
    });
    return sum;
  }
  double diagonal(int64_t i, int64_t j) const {
    double sum = 0.0;
    each(i, j, [&](double weight, int64_t, int64_t, bool is_there) {
      if (is_there || op.ends == AxisEnds::kZero) sum += weight;
    });
    return sum;
  }

 private:
  template <class Visit>
  void each(int64_t i, int64_t j, Visit&& visit) const {
    const auto wrapped = [&](int64_t k, int64_t n) { return op.is_periodic() ? (k + n) % n : k; };
    for (const int64_t step : {-1, 1}) {
      const int64_t row = wrapped(i + step, op.height), column = wrapped(j + step, op.width);
      visit(op.down, row, j, row >= 0 && row < op.height);
      visit(op.across, i, column, column >= 0 && column < op.width);
    }
  }
};

Grid grid_of(const FivePoint& op, const Tensor& u) {
  const Tensor wide = contiguous(cast(u, DType::kFloat64));
  return {op, {wide.data<double>(), wide.data<double>() + wide.size()}};
}

/// The grid with `halo` rows more on both sides.
Tensor padded(const FivePoint& op, const Tensor& u, int64_t halo) {
  const Tensor made = zeros({op.height + 2 * halo, op.width}, u.dtype());
  for (int64_t row = -halo; row < op.height + halo; ++row) {
    const bool is_inside = row >= 0 && row < op.height;
    if (!is_inside && !op.is_periodic()) continue;
    const int64_t from = (row + 8 * op.height) % op.height;
    copy_into(slice(made, 0, row + halo, row + halo + 1), slice(u, 0, from, from + 1));
  }
  return made;
}

int colour_by_definition(const FivePoint& op, int64_t i, int64_t j) {
  const auto kind = [&](int64_t k, int64_t n) {
    const bool is_odd_end = op.is_periodic() && n > 1 && n % 2 == 1 && k == n - 1;
    return is_odd_end ? 2 : static_cast<int>(k % 2);
  };
  return (kind(i, op.height) + kind(j, op.width)) % static_cast<int>(colours_of(op).size());
}

std::vector<FivePoint> operators() {
  std::vector<FivePoint> made;
  for (const AxisEnds ends : kEnds) {
    for (const auto& [height, width] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 1}, {1, 9}, {8, 1}, {2, 2}, {5, 3}, {7, 40}, {32, 7}, {9, 1100}, {3001, 37}}) {
      made.push_back(without_loops({height, width, 1.5, 0.25, ends}));
    }
  }
  return made;
}

TEST(PoissonRows, NeighboursHaveOtherColours) {
  for (const FivePoint& op : operators()) {
    for (int64_t i = 0; i < op.height; ++i) {
      for (int64_t j = 0; j < op.width; ++j) {
        const auto differs = [&](int64_t row, int64_t column) {
          if (op.is_periodic()) row %= op.height, column %= op.width;
          const bool is_other = row < op.height && column < op.width && (row != i || column != j);
          if (is_other) {
            EXPECT_NE(colour_by_definition(op, i, j), colour_by_definition(op, row, column));
          }
        };
        differs(i + 1, j);
        differs(i, j + 1);
      }
    }
  }
}

TEST(PoissonRows, RelaxesColourByColour) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const double tolerance = dtype == DType::kFloat32 ? 2e-5 : 1e-13;
    for (const FivePoint& op : operators()) {
      const Tensor u = noise({op.height, op.width}, dtype, 1), b = noise(u.shape(), dtype, 2);
      std::vector<int> colours = colours_of(op);
      colours.push_back(0);
      colours.push_back(1);
      const auto passes = static_cast<int64_t>(colours.size());
      const Tensor rows = padded(op, u, passes + 1);
      relax_rows(op, rows, padded(op, b, passes), -passes - 1, colours, 1.25);
      Grid expected = grid_of(op, u);
      const Grid rhs = grid_of(op, b);
      for (const int colour : colours) {
        for (int64_t i = 0; i < op.height; ++i) {
          for (int64_t j = 0; j < op.width; ++j) {
            if (colour_by_definition(op, i, j) != colour) continue;
            const double diagonal = expected.diagonal(i, j);
            const double best =
                diagonal > 0.0 ? (rhs.at(i, j) + expected.around(i, j)) / diagonal : 0.0;
            double& cell = expected.u[static_cast<size_t>(i * op.width + j)];
            cell += 1.25 * (best - cell);
          }
        }
      }
      // One row of the halo is as it should be, too.
      const int64_t more = op.is_periodic() ? 1 : 0;
      for (int64_t i = -more; i < op.height + more; ++i) {
        const Grid row = grid_of(op, slice(rows, 0, i + passes + 1, i + passes + 2));
        for (int64_t j = 0; j < op.width; ++j) {
          ASSERT_NEAR(row.u[static_cast<size_t>(j)], expected.at((i + op.height) % op.height, j),
                      tolerance)
              << op.height << " x " << op.width << " at " << i << ", " << j;
        }
      }
    }
  }
}

TEST(PoissonRows, ResidualsAndTheirSquares) {
  for (const FivePoint& op : operators()) {
    const Tensor u = noise({op.height, op.width}, DType::kFloat64, 1);
    const Tensor b = noise(u.shape(), DType::kFloat64, 2), rest = zeros(u.shape(), u.dtype());
    const Tensor image = zeros(u.shape(), u.dtype());
    const Tensor squares = residual_rows(op, padded(op, u, 1), b, 0, rest);
    residual_rows(op, padded(op, u, 1), {}, 0, image);
    const Grid grid = grid_of(op, u), rhs = grid_of(op, b);
    for (int64_t i = 0; i < op.height; ++i) {
      double sum = 0.0;
      for (int64_t j = 0; j < op.width; ++j) {
        const double value = rhs.at(i, j) - grid.applied(i, j);
        sum += value * value;
        EXPECT_NEAR(rest.data<double>()[i * op.width + j], value, 1e-13);
        EXPECT_NEAR(image.data<double>()[i * op.width + j], grid.applied(i, j), 1e-13);
      }
      EXPECT_NEAR(squares.data<double>()[i], sum, 1e-12 * (1.0 + sum));
    }
    const Tensor dots = dots_of_rows(u, b);
    for (int64_t i = 0; i < op.height; ++i) {
      double sum = 0.0;
      for (int64_t j = 0; j < op.width; ++j) sum += grid.at(i, j) * rhs.at(i, j);
      EXPECT_NEAR(dots.data<double>()[i], sum, 1e-12);
    }
  }
}

/// The matrix, with columns around a periodic axis brought back.
std::vector<double> dense(const Bands& bands, int64_t columns) {
  std::vector<double> matrix(static_cast<size_t>(bands.rows() * columns), 0.0);
  for (int64_t i = 0; i < bands.rows(); ++i) {
    for (int64_t k = 0; k < bands.taps; ++k) {
      const double weight = bands.weights[static_cast<size_t>(i * bands.taps + k)];
      const int64_t column = (bands.first[static_cast<size_t>(i)] + k + columns) % columns;
      if (weight != 0.0) matrix[static_cast<size_t>(i * columns + column)] += weight;
    }
  }
  return matrix;
}

TEST(PoissonRows, TransfersAreLinearAndTransposesOfEachOther) {
  for (const AxisEnds ends : kEnds) {
    for (int64_t fine = 1; fine < 40; ++fine) {
      const int64_t coarse = coarser(fine, ends);
      ASSERT_EQ(coarse<fine, fine> 1);
      const double wider = coarsening(fine, coarse, ends);
      EXPECT_LE(wider, 2.0);
      for (const auto& [bands, columns] : {std::pair(interpolation(fine, coarse, ends), coarse),
                                           std::pair(restriction(fine, coarse, ends), fine)}) {
        if (ends == AxisEnds::kPeriodic || columns < bands.taps) continue;
        for (const int64_t first : bands.first) {
          EXPECT_GE(first, 0);
          EXPECT_LE(first + bands.taps, columns);
        }
      }
      const std::vector<double> up = dense(interpolation(fine, coarse, ends), coarse);
      const std::vector<double> down = dense(restriction(fine, coarse, ends), fine);
      for (int64_t i = 0; i < fine; ++i) {
        double sum = 0.0, place = 0.0;
        for (int64_t k = 0; k < coarse; ++k) {
          const double weight = up[static_cast<size_t>(i * coarse + k)];
          EXPECT_NEAR(down[static_cast<size_t>(k * fine + i)], weight / wider, 1e-15);
          sum += weight;
          place += weight * static_cast<double>(k + 1) * wider;
        }
        if (ends == AxisEnds::kZero) {  // the values at the ends count as well
          const bool is_linear_there = static_cast<double>(i + 1) <= wider * double(coarse);
          if (is_linear_there) {
            EXPECT_NEAR(place, static_cast<double>(i + 1), 1e-12) << fine;
          }
        } else {
          EXPECT_NEAR(sum, 1.0, 1e-15) << fine;
        }
      }
    }
  }
}

TEST(PoissonRows, ResamplesRowsAndColumns) {
  for (const AxisEnds ends : kEnds) {
    const int64_t height = 9, width = 14;
    const int64_t rows = coarser(height, ends), columns = coarser(width, ends);
    const Bands down = restriction(height, rows, ends), across = restriction(width, columns, ends);
    const Tensor in = noise({height, width}, DType::kFloat64, 4);
    const FivePoint op{height, width, 1.0, 1.0, ends};
    const Tensor with_halo = padded(op, in, 3);
    const Tensor out = ones({rows, columns}, DType::kFloat64);
    const BandTable by_row = band_table(down, 0, rows, -3, DType::kFloat64, kCpu);
    const BandTable by_column = band_table(across, 0, columns, 0, DType::kFloat64, kCpu);
    resample_rows(with_halo, by_row, by_column, out, true);
    const std::vector<double> a = dense(down, height), b = dense(across, width);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        double sum = 1.0;
        for (int64_t k = 0; k < height; ++k) {
          for (int64_t l = 0; l < width; ++l) {
            sum += a[static_cast<size_t>(i * height + k)] * in.data<double>()[k * width + l] *
                   b[static_cast<size_t>(j * width + l)];
          }
        }
        EXPECT_NEAR(out.data<double>()[i * columns + j], sum, 1e-13);
      }
    }
  }
}

TEST(PoissonRows, SaysWhatDoesNotFit) {
  const FivePoint op{4, 5};
  const Tensor u = zeros({6, 5}, DType::kFloat64), b = zeros({4, 5}, DType::kFloat64);
  EXPECT_THROW(relax_rows(op, u, u, -1, {0}), ShapeError);
  EXPECT_THROW(relax_rows(op, zeros({6, 4}, DType::kFloat64), b, -1, {0}), ShapeError);
  EXPECT_THROW(relax_rows(op, u, cast(b, DType::kFloat32), -1, {0}), DTypeError);
  EXPECT_THROW(relax_rows(op, zeros({6, 5}, DType::kInt32), b, -1, {0}), DTypeError);
  EXPECT_THROW(relax_rows(op, u, slice(u, 0, 1, 5), -1, {0}), ExecutionError);
  EXPECT_THROW(residual_rows(op, slice(zeros({6, 10}, DType::kFloat64), 1, 0, 10, 2), b, 0, {}),
               ExecutionError);
  EXPECT_THROW(dots_of_rows(u, b), ShapeError);
  const BandTable same =
      band_table(interpolation(4, 4, AxisEnds::kZero), 0, 4, 0, DType::kFloat32, kCpu);
  EXPECT_THROW(resample_rows(b, same, same, b), ShapeError);
  EXPECT_THROW(
      resample_rows(zeros({4, 4}, DType::kFloat64), same, same, zeros({4, 4}, DType::kFloat64)),
      DTypeError);
}

}  // namespace
}  // namespace cuop
