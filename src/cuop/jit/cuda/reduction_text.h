// Reductions as kernel text: the types of their states, what these begin with, how they are folded
// and what of them is written.
#pragma once

#include <string>

#include "cuop/core/text.h"
#include "cuop/jit/cuda/kernel_types.h"

namespace cuop::jit::detail {

/// The type of a reduction's result while it is being made.
inline std::string state_type(const Node& node) {
  const std::string type = accumulator_type(node);
  return has_moments(node) ? cat("MomentsOf<", type, ">") : type;
}

inline std::string start_of(ReduceKind kind, const std::string& type) {
  switch (kind) {
    case ReduceKind::kMoments:
      return cat(type, "{0.0, 0.0, 0.0, 0}");
    case ReduceKind::kProd:
      return cat(type, "(1)");
    case ReduceKind::kMax:
      return cat("lowest<", type, ">()");
    case ReduceKind::kMin:
      return cat("highest<", type, ">()");
    default:
      return cat(type, "(0)");
  }
}

/// Of the state of moments.
inline const char* text_of(MomentsPart part) {
  switch (part) {
    case MomentsPart::kCenter:
      return ".center";
    case MomentsPart::kSum:
      return ".sum";
    case MomentsPart::kSquares:
      return ".squares";
    default:
      return ".about_mean()";
  }
}

inline const char* functor_of(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kProd:
      return "fn::Multiply";
    case ReduceKind::kMax:
      return "fn::Maximum";
    case ReduceKind::kMin:
      return "fn::Minimum";
    default:
      return "fn::Add";
  }
}

}  // namespace cuop::jit::detail
