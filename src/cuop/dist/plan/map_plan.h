// Planning operations whose result can be made block by block: a block of the result needs one box
// of each input and nothing else (element-wise work, transposition, batches of transforms,
// convolution in batch, channels or space). What an operation has to say is which box that is.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "cuop/dist/plan/plan.h"

namespace cuop::dist {

/// The box of input number `input` that a (non-empty) box of the result depends on.
using NeededBox = std::function<Box(size_t input, const Box& output)>;

/// A way to lay the result over the ranks.
struct MapChoice {
  std::string strategy;
  Sharding output;
};

struct MapProblem {
  std::string op;
  std::vector<Placement> inputs;  ///< where they lie
  Shape shape;                    ///< of the result
  DType dtype = DType::kFloat32;  ///< of the result
  NeededBox needed;
  std::vector<MapChoice> choices;
  double flops_per_element = 1;      ///< of the result
  double Machine::*speed = nullptr;  ///< figure that is the efficiency of add_compute; none: 1
  std::optional<ProductSides> product = {};  ///< whose product_efficiency it is instead
  bool is_elementwise = false;               ///< an element of the result takes one of each input
  bool skips_elements = false;               ///< of the inputs some may be read by nobody
  bool may_chunk = false;          ///< arithmetic takes so long that moves may hide behind it
  std::optional<Sharding> wanted;  ///< where the result is wanted; none leaves it where it is made
};

/// Adds the choice "root" when all inputs lie on one rank. outputs[0]: as made, outputs[1]: as
/// wanted.
Plan plan_map(const MapProblem& problem, const Machine& machine, std::string_view strategy = {});

/// For each rank the box of an input that its part of the result depends on.
std::vector<Box> needed_boxes(const NeededBox& needed, size_t input, int input_ndim,
                              const std::vector<Box>& outputs);

/// How blocks of the result are made in chunks (overlap.h): along which dimension of the result,
/// and which inputs' boxes are cut with it; what others give a block is there before the first
/// chunk.
struct MapChunks {
  int axis = 0;
  std::vector<bool> is_cut;  ///< for each input
  bool operator==(const MapChunks&) const = default;
};
/// Of so many chunks. None where the boxes that an input gives to them overlap: one would come
/// while another is read.
std::optional<MapChunks> map_chunks(const NeededBox& needed, const std::vector<Placement>& inputs,
                                    const Sharding& output, const Shape& shape, int64_t count);

/// The rank on which all inputs lie, -1 when there is none.
int common_rank(const std::vector<Placement>& inputs);
/// Whether there is one, and the result, if it is wanted somewhere, is wanted there: then nobody
/// else does any work before something of the inputs, of which none is empty, has arrived.
bool is_rooted(const std::vector<Placement>& inputs, const std::optional<Sharding>& wanted);

/// The result's rows (dimension `dim`) over all ranks in a line.
Sharding split_over_ranks(int ranks, int ndim, int dim);

/// A dimension of the result that may be split, and the strategy that splits it alone.
struct SplitDim {
  int dim = 0;
  std::string strategy;
};
/// Every way to split a result of `ndim` dimensions over all ranks along some of `dims`: one alone
/// by its own name, several as "grid".
std::vector<MapChoice> split_choices(int ranks, int ndim, const std::vector<SplitDim>& dims);

/// The box of an operand of `shape` that NumPy's broadcasting maps to `output`.
Box broadcast_source(const Box& output, const Shape& shape);

}  // namespace cuop::dist
