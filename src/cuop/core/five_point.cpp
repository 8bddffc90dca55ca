#include "cuop/core/five_point.h"

#include <algorithm>
#include <utility>

#include "cuop/core/divide_up.h"

namespace cuop {
namespace {

/// A place on the coarse axis: between cells `cell` and `cell` + 1, `share` of the way.
struct Place {
  int64_t cell = 0;
  double share = 0.0;
};

Place place_of(int64_t i, int64_t fine, int64_t coarse, AxisEnds ends) {
  // A fraction of whole numbers, so that the places of cells on cells are exact.
  int64_t above = i * coarse, below = fine;
  if (ends == AxisEnds::kZero) {
    above = (i + 1) * (coarse + 1) - (fine + 1);
    below = fine + 1;
  } else if (ends == AxisEnds::kZeroFlux) {
    above = (2 * i + 1) * coarse - fine;
    below = 2 * fine;
  }
  const int64_t cell = above >= 0 ? above / below : -divide_up(-above, below);
  return {cell, static_cast<double>(above - cell * below) / static_cast<double>(below)};
}

Bands identity(int64_t cells) {
  Bands bands;
  for (int64_t i = 0; i < cells; ++i) bands.first.push_back(i);
  bands.weights.assign(static_cast<size_t>(cells), 1.0);
  return bands;
}

/// Row i with its numbers moved among its taps, so that they name columns that there are, unless
/// there are fewer than taps: who has all columns has all that are read then.
void keep_inside(Bands& bands, int64_t columns) {
  for (int64_t i = 0; i < bands.rows(); ++i) {
    int64_t& first = bands.first[static_cast<size_t>(i)];
    const auto begin = bands.weights.begin() + i * bands.taps, end = begin + bands.taps;
    for (; first < 0; ++first) std::rotate(begin, begin + 1, end);
    for (; first > 0 && first + bands.taps > columns; --first) std::rotate(begin, end - 1, end);
  }
}

}  // namespace

FivePoint without_loops(FivePoint op) {
  if (op.is_periodic() && op.height == 1) op.down = 0.0;
  if (op.is_periodic() && op.width == 1) op.across = 0.0;
  return op;
}

std::vector<int> colours_of(const FivePoint& op) {
  const auto has_odd_loop = [&](int64_t cells) {
    return op.is_periodic() && cells > 1 && cells % 2 == 1;
  };
  if (has_odd_loop(op.height) || has_odd_loop(op.width)) return {0, 2, 1};
  return {0, 1};
}

int64_t coarser(int64_t cells, AxisEnds ends) {
  return ends == AxisEnds::kZero ? std::max<int64_t>(1, cells / 2) : (cells + 1) / 2;
}

double coarsening(int64_t fine, int64_t coarse, AxisEnds ends) {
  const int64_t more = ends == AxisEnds::kZero ? 1 : 0;
  return static_cast<double>(fine + more) / static_cast<double>(coarse + more);
}

Bands interpolation(int64_t fine, int64_t coarse, AxisEnds ends) {
  if (fine == coarse) return identity(fine);
  Bands bands;
  bands.taps = 2;
  for (int64_t i = 0; i < fine; ++i) {
    const Place place = place_of(i, fine, coarse, ends);
    double low = 1.0 - place.share, high = place.share;
    const bool is_before = place.cell < 0, is_behind = place.cell + 1 >= coarse;
    if (ends == AxisEnds::kZero) {
      if (is_before) low = 0.0;
      if (is_behind) high = 0.0;
    } else if (ends == AxisEnds::kZeroFlux) {  // beyond the end the cell itself stands again
      if (is_before) high = 1.0, low = 0.0;
      if (is_behind) low = 1.0, high = 0.0;
    }
    bands.first.push_back(place.cell);
    bands.weights.insert(bands.weights.end(), {low, high});
  }
  if (ends != AxisEnds::kPeriodic) keep_inside(bands, coarse);
  return bands;
}

Bands restriction(int64_t fine, int64_t coarse, AxisEnds ends) {
  if (fine == coarse) return identity(fine);
  const Bands up = interpolation(fine, coarse, ends);
  const double scale = 1.0 / coarsening(fine, coarse, ends);
  // Of each coarse cell the fine ones that it is interpolated to, in the order of an axis without
  // bounds.
  std::vector<std::vector<std::pair<int64_t, double>>> found(static_cast<size_t>(coarse));
  for (int64_t i = 0; i < fine; ++i) {
    for (int64_t k = 0; k < 2; ++k) {
      const int64_t cell = up.first[static_cast<size_t>(i)] + k;
      const double weight = up.weights[static_cast<size_t>(2 * i + k)];
      if (weight == 0.0) continue;
      const bool is_around = cell == coarse;  // of a periodic axis
      found[static_cast<size_t>(is_around ? 0 : cell)].push_back(
          {is_around ? i - fine : i, weight});
    }
  }
  Bands bands;
  for (auto& each : found) {
    std::sort(each.begin(), each.end());
    bands.first.push_back(each.front().first);
    bands.taps = std::max(bands.taps, each.back().first - each.front().first + 1);
  }
  bands.weights.assign(static_cast<size_t>(coarse * bands.taps), 0.0);
  for (size_t cell = 0; cell < found.size(); ++cell) {
    for (const auto& [i, weight] : found[cell]) {
      const int64_t at = static_cast<int64_t>(cell) * bands.taps + i - bands.first[cell];
      bands.weights[static_cast<size_t>(at)] += weight * scale;
    }
  }
  if (ends != AxisEnds::kPeriodic) keep_inside(bands, fine);
  return bands;
}

}  // namespace cuop
