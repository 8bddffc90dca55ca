// What the source of a kernel and the bytes of its arguments must agree on.
#pragma once

#include <algorithm>

#include "cuop/jit/cuda/loops.h"

namespace cuop::jit::detail {

inline bool is_16bit(DType dtype) { return compute_dtype(dtype) != dtype; }

/// The type as kernel text names it.
inline const char* type_name(DType dtype) {
  static constexpr const char* kNames[] = {
      "bool",     "int8_t",   "int16_t",  "int32_t",        "int64_t",
      "uint8_t",  "uint16_t", "uint32_t", "uint64_t",       "Half",
      "BFloat16", "float",    "double",   "Complex<float>", "Complex<double>"};
  return kNames[static_cast<size_t>(dtype)];
}
inline const char* value_type(DType dtype) { return type_name(compute_dtype(dtype)); }

/// In which reductions add up; as the CPU's.
inline DType accumulator_dtype(const Node& node) {
  const auto kind = static_cast<ReduceKind>(node.code);
  const DType compute = compute_dtype(node.compute);
  if (kind != ReduceKind::kSum && kind != ReduceKind::kProd && kind != ReduceKind::kMean) {
    return compute;
  }
  if (compute == DType::kFloat32) return DType::kFloat64;
  return compute == DType::kComplex64 ? DType::kComplex128 : compute;
}
inline const char* accumulator_type(const Node& node) { return type_name(accumulator_dtype(node)); }
inline bool has_moments(const Node& node) {
  return static_cast<ReduceKind>(node.code) == ReduceKind::kSquares;
}

/// Results that a thread has of each reduction at once.
inline int states_abreast(const Loops& loops) { return loops.is_column ? loops.width : 1; }

/// Bytes of a thread's partial results of all reductions, so many of each.
inline int64_t state_bytes(const Expr& expr, int abreast) {
  constexpr int64_t kAlignment = 16;  // of the struct State
  int64_t bytes = 0;
  const auto add = [&](int64_t size, int64_t parts = 1) {
    bytes = (bytes + size - 1) / size * size + size * parts * abreast;
  };
  for (const int output : expr.outputs()) {
    const Node& node = expr.node(output);
    if (node.kind != NodeKind::kReduce) continue;
    if (has_moments(node)) {
      // Two numbers, a sum of squares and a count.
      const int64_t number = itemsize(accumulator_dtype(node));
      add(number, 2 + 16 / number);
      continue;
    }
    add(itemsize(accumulator_dtype(node)));
    if (is_position(static_cast<ReduceKind>(node.code))) add(8);
  }
  return std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

/// The fields of the struct of arguments, in their order. Source and bytes both come from here, so
/// that they cannot disagree; names are the source's affair, as arguments are packed at each
/// launch.
template <class Visitor>
void visit_fields(const Expr& expr, const Loops& loops, Visitor&& visit) {
  visit.count();
  if (loops.has_tail) visit.size();
  for (int i = 1; i < loops.axes; ++i) {
    if (i != loops.kept) visit.axis(i);
  }
  for (size_t k = 0; k < loops.walkers.size(); ++k) {
    const Walker& walker = loops.walkers[k];
    visit.pointer(k, walker);
    for (size_t i = 0; i < walker.pattern.size(); ++i) {
      if (walker.pattern[i] == 'x' || walker.pattern[i] == 's') visit.stride(k, walker, i);
    }
  }
  for (const Node& node : expr.nodes()) {
    if (node.kind == NodeKind::kParameter) visit.parameter(node);
  }
  if (loops.is_reduction) visit.share();
}

}  // namespace cuop::jit::detail
