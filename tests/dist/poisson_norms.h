// What a solution of the Poisson equation is held to: residuals by the definition.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "cuop/core/text.h"
#include "cuop/dist/algo/poisson.h"
#include "tests/dist/algo_test.h"

namespace cuop::dist::rank_test {

inline constexpr PoissonBoundary kPoissonBoundaries[] = {
    PoissonBoundary::kZero, PoissonBoundary::kPeriodic, PoissonBoundary::kDirichlet,
    PoissonBoundary::kNeumann};
inline bool leaves_mean_open(PoissonBoundary boundary) {
  return boundary == PoissonBoundary::kPeriodic || boundary == PoissonBoundary::kNeumann;
}

inline double mean_of(const Tensor& x) {
  double sum = 0.0;
  for (const double value : values(x)) sum += value;
  return sum / static_cast<double>(x.size());
}

/// 2-norms over the cells that are solved for, by the definition.
struct Norms {
  double rhs = 0.0;
  double residual = 0.0;       ///< of rhs without its mean where that has to be left out
  double true_residual = 0.0;  ///< of rhs as it is
  double frame = 0.0;          ///< by which the frame has changed
};

inline Norms norms_of(const Tensor& u, const Tensor& grid, const Tensor& rhs,
                      const PoissonOptions& options) {
  const int64_t h = u.shape(0), w = u.shape(1);
  const std::vector<double> x = values(u), f = values(rhs), start = values(grid);
  const PoissonBoundary boundary = options.boundary;
  const double mean = leaves_mean_open(boundary) ? mean_of(rhs) : 0.0;
  const auto at = [&](int64_t i, int64_t j) {
    if (boundary == PoissonBoundary::kPeriodic) i = (i + h) % h, j = (j + w) % w;
    if (boundary == PoissonBoundary::kNeumann) {
      i = std::clamp<int64_t>(i, 0, h - 1), j = std::clamp<int64_t>(j, 0, w - 1);
    }
    return i < 0 || j < 0 || i >= h || j >= w ? 0.0 : x[static_cast<size_t>(i * w + j)];
  };
  Norms norms;
  for (int64_t i = 0; i < h; ++i) {
    for (int64_t j = 0; j < w; ++j) {
      const auto here = static_cast<size_t>(i * w + j);
      const bool is_frame = i == 0 || j == 0 || i == h - 1 || j == w - 1;
      if (boundary == PoissonBoundary::kDirichlet && is_frame) {
        norms.frame += std::abs(x[here] - start[here]);
        continue;
      }
      const double laplacian =
          (at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1) - 4.0 * at(i, j)) /
          (options.dx * options.dx);
      norms.rhs += (f[here] - mean) * (f[here] - mean);
      norms.residual += (f[here] - mean - laplacian) * (f[here] - mean - laplacian);
      norms.true_residual += (f[here] - laplacian) * (f[here] - laplacian);
    }
  }
  norms.rhs = std::sqrt(norms.rhs);
  norms.residual = std::sqrt(norms.residual);
  norms.true_residual = std::sqrt(norms.true_residual);
  return norms;
}

/// Whose messages cost nothing, so that even the smallest grids are shared.
inline Machine fast_wire() {
  Machine machine;
  machine.latency = machine.message_overhead = 1e-15;
  return machine;
}

inline std::string label(const PoissonOptions& options, const Shape& shape, int ranks) {
  return cat("method ", static_cast<int>(options.method), ", boundary ",
             static_cast<int>(options.boundary), ", ", shape, ", ", ranks, " ranks");
}

}  // namespace cuop::dist::rank_test
