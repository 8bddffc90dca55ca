#include "cuop/core/reduce_kind.h"

namespace cuop {

const char* name(ReduceKind kind) {
  static constexpr const char* kNames[] = {
      "sum",       "prod", "max", "min", "mean", "moments", "argmax", "argmin", "compensated sum",
      "exact sum", "any",  "all", "var", "std",  "norm"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace cuop
