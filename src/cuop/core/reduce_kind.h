// The reductions, by one name in every layer.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuop {

/// Communicators know the first four, kernels the first kFoldedKinds, in this order; folds of
/// states kSum to kMoments and the two sums of higher precision. The others are made of those.
enum class ReduceKind : uint8_t {
  kSum,
  kProd,
  kMax,
  kMin,
  kMean,
  kMoments,  ///< mean and sum of squared distances from it
  kArgMax,
  kArgMin,
  kCompensatedSum,
  kExactSum,
  kAny,
  kAll,
  kVar,
  kStd,
  kNorm,
};
inline constexpr size_t kFoldedKinds = 8;
constexpr bool is_position(ReduceKind kind) {
  return kind == ReduceKind::kArgMax || kind == ReduceKind::kArgMin;
}
/// "sum", "argmax", "exact sum", ...
constexpr const char* name(ReduceKind kind) {
  constexpr const char* kNames[] = {
      "sum",       "prod", "max", "min", "mean", "moments", "argmax", "argmin", "compensated sum",
      "exact sum", "any",  "all", "var", "std",  "norm"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace cuop
