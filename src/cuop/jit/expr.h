// The expression IR of elementwise work: a flat list of nodes in the order of their computation.
// Tensors are leaves, numbers are parameters; neither shapes nor constants are part of an
// expression, so one compiled program serves all of them. The CPU interpreter (cpu/program.h) and
// the GPU source generator both start here.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cuop/core/reduce_kind.h"
#include "cuop/jit/op_table.h"

namespace cuop::jit {

enum class NodeKind : uint8_t {
  kLeaf,       ///< an element of a tensor, broadcast to the iteration shape
  kParameter,  ///< a number given at run time
  kOp,         ///< an operation of the elementwise table
  kCast,       ///< conversion to the node's dtype
  /// Reduction over the trailing part of the iteration space; only as an output. Of kinds up to
  /// kFoldedKinds; kMoments (the sum of squared distances from the mean, of float64 or complex128)
  /// and the positions (of the first largest or smallest element along one axis) on GPUs only.
  kReduce,
};

/// What a reduction to moments (kernels/moments.h) gives. Outputs that have their argument in
/// common have the moments in common too.
enum class MomentsPart : uint8_t { kAboutMean, kCenter, kSum, kSquares };

struct Node {
  NodeKind kind = NodeKind::kLeaf;
  DType dtype = DType::kFloat32;    ///< of the value; float16 and bfloat16 are computed in float32
  DType compute = DType::kFloat32;  ///< kOp: the dtype of the arguments
  int16_t code = 0;  ///< kLeaf, kParameter: its number; kOp: its row; kReduce: the ReduceKind
  std::array<int16_t, kMaxArity> arguments{-1, -1, -1};  ///< earlier nodes
  MomentsPart part = MomentsPart::kAboutMean;            ///< kReduce of kind kMoments
};

class Expr {
 public:
  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& node(int index) const { return nodes_[static_cast<size_t>(index)]; }
  /// Nodes whose values are written, in the order of the bindings.
  const std::vector<int16_t>& outputs() const { return outputs_; }
  int leaf_count() const { return leaf_count_; }
  int parameter_count() const { return parameter_count_; }

  /// Each adds a node and returns its index; leaves and parameters are numbered as they are added.
  int add_leaf(DType dtype);
  int add_parameter(DType dtype);
  /// The node itself when it already has the dtype. DTypeError from complex to real.
  int add_cast(int argument, DType dtype);
  /// The arguments are cast to `types.compute` where they differ.
  int add_op(int code, OpTypes types, std::span<const int> arguments);
  /// Sum, product and mean are computed in the node's own dtype (cast before for a wider one).
  /// Positions are int64, moments float64.
  int add_reduce(ReduceKind kind, int argument, MomentsPart part = MomentsPart::kAboutMean);
  void add_output(int node);
  /// The same expression with `count` of its outputs, from `begin` on.
  Expr with_outputs(size_t begin, size_t count) const;
  /// Empties it, keeping its memory.
  void clear();

  /// Equal for two expressions exactly when one compiled program serves both.
  std::string structural_key() const;

 private:
  int push(const Node& node);

  std::vector<Node> nodes_;
  std::vector<int16_t> outputs_;
  int leaf_count_ = 0;
  int parameter_count_ = 0;
};

}  // namespace cuop::jit
