// Operations on arrays that may be larger than a device's memory, as what their pieces need. A tile
// is a box of the result, made in steps: of a sum over a long range each step adds a part of it.
//
// Worked example: C [M, N] = A [M, K] B [K, N]. The tile [0:m, 0:n] of C in step [k0, k1) needs
// A [0:m, k0:k1] and B [k0:k1, 0:n]; the steps are added up on the device.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cuop/dist/cost/machine.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/exec/operation.h"
#include "cuop/dist/header.h"
#include "cuop/dist/plan/plan.h"
#include "cuop/dist/plan/wire.h"
#include "cuop/ops/work_figures.h"

namespace cuop::executor {

using dist::Header;
using dist::Part;

inline int64_t bytes_of(const Header& array) {
  return element_count(array.shape) * itemsize(array.dtype);
}

/// Of an array in a box.
inline int64_t bytes_of(const Header& array, const Box& box) {
  return box.size() * itemsize(array.dtype);
}

struct TileProblem {
  std::string op;
  std::vector<std::string> names;  ///< of the inputs
  std::vector<Header> inputs;
  Header output;
  std::vector<int> cut_dims;  ///< dimensions of the output that may be cut; others stay whole
  int64_t summed = 1;         ///< length of the range that may be cut into steps; 1: one step
  int64_t state_bytes = 0;    ///< of what is kept for an element between steps; 0: the element
  double flops = 0;           ///< of all
  /// The share of the flops of a matrix product that it reaches, or the figure that says it.
  double efficiency = 1;
  double dist::Machine::*speed = nullptr;
  DType computed = DType::kFloat32;  ///< the dtype of the arithmetic

  dist::Wire wire = {};             ///< in what form inputs travel to a GPU
  std::vector<int> line_axes = {};  ///< of each input: elements that share a scale on a narrow wire

  /// What an input reads outside of itself, of rows alone (dimension 0): nothing, as its boxes lie
  /// inside of it, or zeros, or the rows of the opposite side.
  enum class Outside : uint8_t { kNothing, kZero, kWrapped };
  std::vector<Outside> outside = {};  ///< of each input; none: nothing

  /// The output's axes in the order of the memory that it goes to; none: row-major.
  Dims placed_order = {};

  /// The box of an input that a box of the output reads in a step; neither is empty.
  std::function<Box(size_t input, const Box& output, Interval step)> needed;
  /// Bytes that the work on a tile takes beside its inputs and its result; none without.
  std::function<int64_t(const Box& output, Interval step, const WorkFigures& figures)> scratch = {};
  /// The part of its speed that the work on a tile reaches; none: all of it, half without copies.
  std::function<double(const Box& output, Interval step, const WorkFigures& figures)> pace = {};
  /// Bytes of a library's workspace: without which there is no way, and that make the work quicker.
  int64_t least_workspace = 0, most_workspace = 0;
  WorkFigures figures = {};  ///< of the device that it is for
  /// Whether the work on a tile is one product at most, of which parts of operands may be kept.
  bool is_one_product = false;

  int64_t scratch_bytes(const Box& made, Interval step) const {
    return scratch ? scratch(made, step, figures) : 0;
  }
  double pace_of(const Box& made, Interval step) const {
    constexpr double kWithoutCopies = 0.5;  // about, of convolutions as of products
    if (pace) return pace(made, step, figures);
    return figures.spare.has_copies ? 1 : kWithoutCopies;
  }
  int64_t element_bytes() const { return state_bytes > 0 ? state_bytes : itemsize(output.dtype); }
  Outside outside_of(size_t input) const {
    return outside.empty() ? Outside::kNothing : outside[input];
  }
  /// All bytes of the inputs.
  int64_t input_bytes() const;
  int64_t output_bytes() const;
};

/// What there is to work with: `devices` like each other.
struct TileMachine {
  int devices = 1;
  int64_t memory = 0;      ///< bytes that may be used on each
  double upload = 1e10;    ///< bytes a second from the host to one device
  double download = 1e10;  ///< and back
  double duplex = 0;       ///< part of the shorter way that the other hides; 0: one at a time
  double stretch = 2e-9;   ///< seconds of a stretch of an array's memory beside its bytes
  /// Bytes a second from one device to another, where those that read the same bring each byte from
  /// the host once and give it to each other; 0: each brings all that it reads.
  double between = 0;
  dist::Machine device;  ///< flops and memory bandwidth of one
  WorkFigures figures;   ///< of one: what its work takes beside arrays
};

/// One of `count` devices that read the same of an input.
struct Reader {
  int index = 0;
  int count = 1;
};
/// Of shorter boxes each device brings all: to agree with another takes as long as their bytes.
inline constexpr int64_t kLeastShared = int64_t{4} << 20;
inline bool is_shared(int readers, int64_t bytes) { return readers > 1 && bytes >= kLeastShared; }

/// The array that holds a result of which a tile is not just its box there.
struct TilePlace {
  Header array;
  /// Puts the tile of that box, which is not used any more, into the array. Tiles share no element.
  std::function<void(const Tensor& array, const Box& output, const Tensor& tile)> put;
};

/// A problem and its work.
struct Tiling : TileProblem {
  /// What a step makes of a tile, from the parts of the inputs that it needs.
  std::function<Tensor(const std::vector<Part>& inputs, const Box& output, Interval step)> make;
  /// sum <- sum + next, of two steps or of two ranks. Not for problems of one step.
  std::function<void(Tensor& sum, const Tensor& next)> add = {};
  /// The tile from the sum of its steps; the sum itself without.
  std::function<Tensor(const Tensor& sum)> finish = {};
  std::optional<TilePlace> place = {};  ///< none: the array is the output

  Header stored() const { return place ? place->array : output; }
};

/// Inputs as planners of dist take them, on one rank.
std::vector<dist::Placement> placements_of(const std::vector<std::string>& names,
                                           const std::vector<Header>& inputs);

/// An operation by name with its arguments, ready for any inputs.
struct TileOperation {
  std::string text;  ///< the call with every argument that must be the same on all ranks
  std::vector<std::string> names;  ///< of the inputs; those that may be left out come last
  /// Errors for inputs that do not fit.
  std::function<Tiling(const std::vector<Header>& inputs)> describe;
  /// The same over ranks, of arrays that fit; none of what is only a part of a call.
  std::function<dist::Operation()> over_ranks = {};
};

}  // namespace cuop::executor
