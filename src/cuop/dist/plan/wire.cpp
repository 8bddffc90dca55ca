#include "cuop/dist/plan/wire.h"

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::dist {

Wire Wire::narrow(DType dtype, const char* who) {
  if (dtype != DType::kFloat16 && dtype != DType::kBFloat16) {
    throw DTypeError(
        cat(who, ": elements cannot travel as ", dtype, ", allowed are float16 and bfloat16"));
  }
  return {.form = Form::kNarrow, .dtype = dtype};
}

Wire Wire::sparse(double threshold, const char* who) {
  if (!(threshold >= 0.0 && threshold <= 1.0)) {
    throw ExecutionError(
        cat(who, ": a sparsity threshold of ", threshold, " was given, allowed are 0 to 1"));
  }
  return {.form = Form::kSparse, .threshold = threshold};
}

void Wire::check_carries(DType given, const char* who) const {
  if (form != Form::kNarrow || is_floating(given)) return;
  throw DTypeError(cat(who, ": ", given, " cannot travel as ", dtype, ", needed are floats"));
}

DType Wire::planned_dtype(DType given) const {
  const bool is_longer = itemsize(given) > itemsize(dtype);
  return form == Form::kNarrow && is_longer ? dtype : given;
}

std::string Wire::text() const {
  if (form == Form::kPlain) return "";
  return form == Form::kNarrow ? cat(", wire ", dtype) : cat(", wire sparse from ", threshold);
}

}  // namespace cuop::dist
