// The five-point Laplacian with its sign turned, on grids [height, width] of any size and of
// different spacings down and across, and linear maps between grids of different sizes. Values
// alone; what works on tensors is row_sweeps.h.
//
//   (A u)[i, j] = down (2 u[i, j] - u[i-1, j] - u[i+1, j])
//               + across (2 u[i, j] - u[i, j-1] - u[i, j+1])
#pragma once

#include <cstdint>
#include <vector>

namespace cuop {

/// How every axis of a grid of n cells ends.
enum class AxisEnds : uint8_t {
  kZero,      ///< cells 1 ... n of nodes 0 ... n + 1, and the first and last node are zero
  kPeriodic,  ///< the last cell's neighbour is the first
  kZeroFlux,  ///< centers of cells; nothing flows through the ends: 2 u - ... counts inner sides
              ///< only
};

struct FivePoint {
  int64_t height = 0, width = 0;    ///< of the whole grid
  double down = 1.0, across = 1.0;  ///< 1 / spacing^2
  AxisEnds ends = AxisEnds::kZero;

  bool is_periodic() const { return ends == AxisEnds::kPeriodic; }
};

/// The same operator with nothing along periodic axes of one cell, which is its own neighbour.
FivePoint without_loops(FivePoint op);

/// Cells that are updated together have no neighbours among themselves. The colours in the order of
/// a sweep: cells whose row and column add up to an even number (colour 0), then the others (1). A
/// periodic axis of odd length has a last cell of a kind of its own, and then there are three, of
/// which 0 and 2 together are the even ones elsewhere: {0, 2, 1}.
std::vector<int> colours_of(const FivePoint& op);

/// A matrix with `taps` numbers side by side in each row: row i has weights[i * taps + k] at column
/// first[i] + k. Columns outside of the matrix are, of a periodic axis, those
/// of the opposite side; of another they are named where there are fewer columns than taps, and
/// their weights are zero.
struct Bands {
  int64_t taps = 1;
  std::vector<int64_t> first;
  std::vector<double> weights;

  int64_t rows() const { return static_cast<int64_t>(first.size()); }
};

/// Cells of the next coarser axis: half as many, rounded so that no two cells become more than the
/// one between them (zero) or one for both.
int64_t coarser(int64_t cells, AxisEnds ends);
/// How much wider cells are on an axis of `coarse` cells.
double coarsening(int64_t fine, int64_t coarse, AxisEnds ends);
/// Linear interpolation [fine, coarse] by the places of cells; the identity where both are equal.
/// Rows sum to 1 but beside zero ends.
Bands interpolation(int64_t fine, int64_t coarse, AxisEnds ends);
/// Its transpose over `coarsening` [coarse, fine]: weighted means.
Bands restriction(int64_t fine, int64_t coarse, AxisEnds ends);

}  // namespace cuop
