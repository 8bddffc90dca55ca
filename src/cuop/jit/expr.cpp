#include "cuop/jit/expr.h"

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::jit {

int Expr::push(const Node& node) {
  nodes_.push_back(node);
  return static_cast<int>(nodes_.size()) - 1;
}

int Expr::add_leaf(DType dtype) {
  return push({NodeKind::kLeaf, dtype, dtype, static_cast<int16_t>(leaf_count_++), {-1, -1, -1}});
}

int Expr::add_parameter(DType dtype) {
  return push(
      {NodeKind::kParameter, dtype, dtype, static_cast<int16_t>(parameter_count_++), {-1, -1, -1}});
}

int Expr::add_cast(int argument, DType dtype) {
  const DType from = node(argument).dtype;
  if (from == dtype) return argument;
  if (is_complex(from) && !is_complex(dtype) && !is_bool(dtype)) {
    throw DTypeError(cat("cast: ", from, " to ", dtype,
                         " would drop the imaginary part; take real(x) or abs(x)"));
  }
  return push({NodeKind::kCast, dtype, from, 0, {static_cast<int16_t>(argument), -1, -1}});
}

int Expr::add_op(int code, OpTypes types, std::span<const int> arguments) {
  const OpInfo& op = op_table()[static_cast<size_t>(code)];
  Node added{NodeKind::kOp, types.result, types.compute, static_cast<int16_t>(code), {-1, -1, -1}};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool is_condition = op.rule == Rule::kSelect && i == 0;
    const DType wanted = is_condition ? DType::kBool : types.compute;
    added.arguments[i] = static_cast<int16_t>(add_cast(arguments[i], wanted));
  }
  return push(added);
}

int Expr::add_reduce(ReduceKind kind, int argument, MomentsPart part) {
  const DType dtype = node(argument).dtype;
  DType result = kind == ReduceKind::kMoments ? real_dtype(dtype) : dtype;
  if (is_position(kind)) result = DType::kInt64;
  return push({NodeKind::kReduce,
               result,
               dtype,
               static_cast<int16_t>(kind),
               {static_cast<int16_t>(argument), -1, -1},
               part});
}

void Expr::add_output(int node) { outputs_.push_back(static_cast<int16_t>(node)); }

Expr Expr::with_outputs(size_t begin, size_t count) const {
  Expr part = *this;
  const auto first = outputs_.begin() + static_cast<std::ptrdiff_t>(begin);
  part.outputs_.assign(first, first + static_cast<std::ptrdiff_t>(count));
  return part;
}

void Expr::clear() {
  nodes_.clear();
  outputs_.clear();
  leaf_count_ = 0;
  parameter_count_ = 0;
}

std::string Expr::structural_key() const {
  std::string key;
  constexpr size_t kRoom = 64;  // for what callers add
  key.reserve(nodes_.size() * 10 + outputs_.size() * 2 + kRoom);
  const auto put = [&key](int value) {
    key.push_back(static_cast<char>(value & 0xff));
    key.push_back(static_cast<char>((value >> 8) & 0xff));
  };
  for (const Node& node : nodes_) {
    put(static_cast<int>(node.kind) | static_cast<int>(node.dtype) << 4 |
        static_cast<int>(node.compute) << 8 | static_cast<int>(node.part) << 12);
    put(node.code);
    if (node.kind == NodeKind::kLeaf || node.kind == NodeKind::kParameter) continue;
    for (const int argument : node.arguments) put(argument);
  }
  put(-1);
  for (const int output : outputs_) put(output);
  return key;
}

}  // namespace cuop::jit
