#include "cuop/dist/plan/wire.h"

#include <algorithm>
#include <cmath>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::dist {
namespace {

/// To take the zeros out of an element's piece and to put them in again: flops and passes over
/// memory of as many bytes as the element has, both sides together. One core of an AMD EPYC
/// takes 2.4 ns for 4 bytes and 4 ns for 8; of GPUs, which make it of a dozen launches, the passes
/// are assumed.
constexpr double kFlops = 100.0, kPasses = 10.0;
constexpr double kLargestPart = 0.97, kLargestLook = 0.02;
/// Per mille that say that zeros always stay.
constexpr int64_t kNever = 1001;

/// The part of zeros from which leaving them out gains; above 1 where none does.
double least_zeros(const Machine& machine, DType dtype, const LinkLoad& load) {
  const auto bytes = static_cast<double>(load.bytes + load.network_bytes);
  const double dense = wire_seconds(machine, load);
  // A sample is looked at, and what each piece is written as goes ahead of it.
  const double look = start_seconds(machine, load, 3);
  if (look > kLargestLook * dense) return 2.0;
  const auto item = static_cast<double>(itemsize(dtype));
  const double of_element = dense * item / bytes, of_bit = dense / bytes / 8.0;
  const double packed = kFlops / machine.flops + kPasses * item / machine.memory_bandwidth;
  // packed + of_bit + (1 - zeros) of_element + a share of the look <= kLargestPart of_element
  return 1.0 - kLargestPart + (packed + of_bit) / of_element + look / dense;
}

}  // namespace

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

Wire Wire::sparse_by_cost() { return {.form = Form::kSparse, .is_by_cost = true}; }

Wire Wire::over(const Machine& machine, DType given, const LinkLoad& load) const {
  if (!is_by_cost) return *this;
  const bool is_empty = load.bytes + load.network_bytes == 0;
  const double zeros = is_empty ? 2.0 : least_zeros(machine, given, load);
  return of_per_mille(zeros < 1.0 ? static_cast<int64_t>(std::ceil(1000.0 * zeros)) : kNever);
}

int64_t Wire::per_mille() const {
  return form == Form::kSparse ? static_cast<int64_t>(std::ceil(1000.0 * threshold)) : kNever;
}

Wire Wire::of_per_mille(int64_t number) {
  if (number >= kNever) return {};
  Wire wire = sparse_by_cost();
  wire.threshold = static_cast<double>(number) / 1000.0;
  return wire;
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
  if (form == Form::kNarrow) return cat(", wire ", dtype);
  return is_by_cost ? ", wire sparse by cost" : cat(", wire sparse from ", threshold);
}

}  // namespace cuop::dist
