// The types in which a generated kernel computes, and the bytes of its partial results.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuop/core/divide_up.h"
#include "cuop/core/dtype.h"
#include "cuop/jit/expr.h"

namespace cuop::jit::detail {

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
  return static_cast<ReduceKind>(node.code) == ReduceKind::kMoments;
}

/// The output whose state this output, a reduction, is taken from: itself, or the first one of the
/// same moments.
inline size_t state_of(const Expr& expr, size_t output) {
  const Node& node = expr.node(expr.outputs()[output]);
  for (size_t i = 0; has_moments(node) && i < output; ++i) {
    const Node& earlier = expr.node(expr.outputs()[i]);
    const bool is_same = earlier.kind == NodeKind::kReduce && has_moments(earlier) &&
                         earlier.arguments[0] == node.arguments[0];
    if (is_same) return i;
  }
  return output;
}

/// Bytes of a thread's partial results of all reductions, so many of each.
inline int64_t state_bytes(const Expr& expr, int abreast) {
  constexpr int64_t kAlignment = 16;  // of the struct State
  int64_t bytes = 0;
  const auto add = [&](int64_t size, int64_t parts = 1) {
    bytes = round_up(bytes, size) + size * parts * abreast;
  };
  for (size_t output = 0; output < expr.outputs().size(); ++output) {
    const Node& node = expr.node(expr.outputs()[output]);
    if (node.kind != NodeKind::kReduce || state_of(expr, output) != output) continue;
    if (has_moments(node)) {
      // Two numbers, a sum of squares and a count.
      const int64_t number = itemsize(accumulator_dtype(node));
      add(number, 2 + 16 / number);
      continue;
    }
    add(itemsize(accumulator_dtype(node)));
    if (is_position(static_cast<ReduceKind>(node.code))) add(8);
  }
  return std::max(kAlignment, round_up(bytes, kAlignment));
}

}  // namespace cuop::jit::detail
