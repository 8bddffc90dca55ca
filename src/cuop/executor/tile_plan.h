// Planning work on arrays that may be larger than memory: who makes which part of the result, in
// which tiles and in which order, so that the fewest bytes come to the devices. A pure function.
//
// Tiles are the nodes of a loop over the cut dimensions, the steps innermost. An input's box stays
// on the device while the loops go on that it does not depend on: of a product in the order rows,
// columns a row panel of A comes once and B once for each row panel. The order and the cuts of
// least predicted time are taken (Irony, Toledo and Tiskin, 2004, for what is possible:
// 2 M N K / sqrt(memory) elements).
#pragma once

#include <string>
#include <vector>

#include "cuop/dist/sharding.h"
#include "cuop/executor/tile_problem.h"

namespace cuop::executor {

/// A way in which the devices might share the work, chosen or not.
struct TileCandidate {
  std::string strategy;
  std::string detail;  ///< of a grid its parts of each dimension, as "(dim 0 in 2, dim 1 in 4)"
  int64_t tiles = 1;   ///< of a device
  int64_t steps = 1;   ///< of a tile
  int64_t memory = 0;
  int64_t smallest = 0;  ///< with less it cannot be
  double seconds = 0;    ///< predicted
  bool is_feasible = true;
};

struct TilePlan {
  std::string op;
  std::string strategy;  ///< how the devices share it: "one", a dimension "dim 0", "grid", "steps"
  std::string detail;    ///< as a candidate's
  dist::Sharding output = dist::Sharding::on_rank(dist::Mesh::line(1), 0);  ///< who makes what
  bool is_by_steps = false;      ///< all make all of the output, of a part of the summed range each
  std::vector<int64_t> cuts;     ///< parts of each dimension of a device's share
  std::vector<int> order;        ///< the dimensions from the outermost loop to the innermost
  int64_t steps = 1;             ///< of a tile
  std::vector<int64_t> lengths;  ///< of a device's share: each dimension, then the summed range
  int busy = 1;                  ///< devices that have something to do

  WorkFigures figures;  ///< of the devices: what the work on tiles may take of them

  Header result;         ///< all of it
  int64_t memory = 0;    ///< bytes on a device, at most
  int64_t limit = 0;     ///< that it may use
  int64_t smallest = 0;  ///< with less there is no plan
  bool is_feasible = true;
  int64_t uploaded = 0;  ///< bytes from the host to the device that gets most
  int64_t shared = 0;    ///< bytes that it takes from other devices, which bring them
  int64_t downloaded = 0;
  int64_t data_bytes = 0;  ///< of all inputs and the output
  double compute = 0;      ///< seconds of arithmetic of the busiest device
  double seconds = 0;      ///< predicted
  double floor = 0;        ///< no plan on these devices takes less
  std::vector<TileCandidate> candidates = {};

  int devices() const { return output.mesh().size(); }
  /// What a device makes, and of which part of the summed range.
  Box share(const TileProblem& problem, int device) const;
  Interval range(const TileProblem& problem, int device) const;
  /// All that a device reads of an input; empty where it has nothing to do.
  Box read(const TileProblem& problem, int device, size_t input) const;
  /// The device among those that read the same of an input.
  Reader reader(const TileProblem& problem, int device, size_t input) const;
  /// Tiles of the device that has most.
  int64_t tiles() const;

  /// One line.
  std::string to_string() const;
  /// Cuts, bytes, memory, predicted time and floor, and the candidates with theirs.
  std::string explain() const;
  std::string to_json() const;
};

/// The plan of least predicted time (of those with at least `least_tiles` tiles and steps a device,
/// where there are such); not feasible (with the cuts that need least memory) where the
/// memory does not suffice for the smallest tiles.
TilePlan plan_tiles(const TileProblem& problem, const TileMachine& machine,
                    int64_t least_tiles = 1);

/// A tile and its steps.
struct Tile {
  Box output;
  std::vector<Interval> steps;
};
/// Those of a device, in order.
std::vector<Tile> tiles_of(const TileProblem& problem, const TilePlan& plan, int device);

/// Bytes that a tile takes while its largest step is made: its inputs, its result and what the work
/// takes besides.
int64_t tile_bytes(const TileProblem& problem, const Tile& tile);
/// The tiles that this one falls into when it is halved where that saves most memory; itself alone
/// when nothing can be halved. Where `is_by_step` its steps were halved.
struct Halved {
  std::vector<Tile> tiles;
  bool is_by_step = false;
};
Halved halved(const TileProblem& problem, const Tile& tile);

}  // namespace cuop::executor
