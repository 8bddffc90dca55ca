// arange, linspace and logspace.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cuop/backend/slot.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/create/create_kernels.h"

namespace cuop {

namespace {

constexpr backend::Slot<void(const Tensor&, const jit::WholeSequence&)> kFillWhole{
    "arange", &kernels::fill_whole_cpu, &kernels::fill_whole_cuda};
constexpr backend::Slot<void(const Tensor&, const jit::RealSequence&)> kFillReal{
    "linspace", &kernels::fill_real_cpu, &kernels::fill_real_cuda};

constexpr backend::Slot<void(const Tensor&, const jit::PowerSequence&)> kFillPowers{
    "logspace", &kernels::fill_powers_cpu, &kernels::fill_powers_cuda};

/// Sequences grow or fall all the way, so their ends are all there is to check.
void check_ends(const char* who, Scalar first, Scalar last, DType dtype) {
  first.check_fits(who, dtype);
  last.check_fits(who, dtype);
}

/// Holds the sums and differences of all that int64 and uint64 hold.
__extension__ typedef __int128 Wide;
constexpr Wide kInt64Max = std::numeric_limits<int64_t>::max();

Wide to_wide(const Scalar& value) {
  return value.is_large() ? static_cast<Wide>(value.to_bits64())
                          : static_cast<Wide>(value.to_int64());
}

Scalar to_scalar(Wide value) {
  return value > kInt64Max ? Scalar(static_cast<uint64_t>(value))
                           : Scalar(static_cast<int64_t>(value));
}

Tensor arange_integers(Wide first, Wide stop, Wide by, DType dtype, Device device) {
  const Wide span = by > 0 ? stop - first : first - stop, pace = by > 0 ? by : -by;
  const Wide wanted = span <= 0 ? 0 : (span - 1) / pace + 1;
  if (wanted >> 62 != 0) {
    throw ShapeError(cat("arange: ", static_cast<double>(wanted), " elements are too many"));
  }
  const Wide last = first + (wanted - 1) * by;
  if (wanted > 0) check_ends("arange", to_scalar(first), to_scalar(last), dtype);
  jit::WholeSequence sequence{static_cast<uint64_t>(first), static_cast<uint64_t>(by)};
  if (wanted > 0 && std::max(first, last) > kInt64Max) {
    // How many numbers from the larger end on int64 does not hold.
    const Wide large = (std::max(first, last) - kInt64Max - 1) / pace + 1;
    const Wide count = std::min(wanted, large);
    sequence.large_begin = static_cast<int64_t>(by > 0 ? wanted - count : 0);
    sequence.large_end = static_cast<int64_t>(by > 0 ? wanted : count);
  }
  const Tensor result = empty({static_cast<int64_t>(wanted)}, dtype, device);
  kFillWhole(device, result, sequence);
  return result;
}

Tensor fill_real(const char* who, int64_t count, const jit::RealSequence& sequence, DType dtype,
                 Device device) {
  if (count > 0) check_ends(who, sequence.value(0), sequence.value(count - 1), dtype);
  const Tensor result = empty({count}, dtype, device);
  kFillReal(device, result, sequence);
  return result;
}

jit::RealSequence evenly_spaced(double start, double stop, int64_t count, bool endpoint) {
  const int64_t intervals = endpoint ? count - 1 : count;
  jit::RealSequence sequence{start, 0.0};
  if (intervals > 0) sequence.by = (stop - start) / static_cast<double>(intervals);
  if (endpoint && count > 1) {
    sequence.given_place = count - 1;
    sequence.given = stop;
  }
  return sequence;
}

/// The logarithm by the library's, made more accurate by one step of Newton's method.
jit::PowerBase power_base(double base) {
  const double size = std::abs(base);
  jit::PowerBase result{{}, size, size, 0, std::signbit(base) ? 1 : 0};
  if (size == 0.0 || !std::isfinite(size)) {
    result.is_special = 1;
    if (std::isnan(size)) {
      result.is_negative = 0;
    } else {
      result.below = 1.0 / size;
    }
    return result;
  }
  int exponent = 0;
  const double fraction = std::frexp(size, &exponent), log = std::log2(fraction);
  const double whole = std::rint(log);
  const jit::TwoDoubles seen = jit::exp2_minus_1({log - whole, 0.0});
  const double left =
      ((std::ldexp(fraction, -static_cast<int>(whole)) - 1.0) - seen.high) - seen.low;
  const double correction = left / ((1.0 + seen.high) * 0x1.62e42fefa39efp-1);  // log 2
  jit::TwoDoubles sum{log, 0.0};
  if (exponent != 0) sum = jit::quick_sum(exponent, log);
  result.log2 = jit::quick_sum(sum.high, sum.low + correction);
  return result;
}

/// As fill_real. Powers of a positive base grow or fall all the way, others must all be checked.
void check_powers(const jit::PowerSequence& sequence, int64_t count, DType dtype) {
  if (count == 0 || !is_integer(dtype)) return;
  if (sequence.base.is_negative == 0) {
    return check_ends("logspace", sequence.value(0), sequence.value(count - 1), dtype);
  }
  for (int64_t i = 0; i < count; ++i) Scalar(sequence.value(i)).check_fits("logspace", dtype);
}

}  // namespace

Tensor arange(Scalar start, Scalar stop, Scalar step, DType dtype, Device device) {
  const trace::Span span("arange", "op");
  if (start.is_complex() || stop.is_complex() || step.is_complex()) {
    throw DTypeError("arange: start, stop and step must be real");
  }
  if (step.to_double() == 0.0) throw ExecutionError("arange: step must not be 0");
  if (!start.is_floating() && !stop.is_floating() && !step.is_floating()) {
    return arange_integers(to_wide(start), to_wide(stop), to_wide(step), dtype, device);
  }
  const double first = start.to_double(), by = step.to_double();
  const double count = std::ceil((stop.to_double() - first) / by);
  if (!(count < 0x1p62)) {
    throw ShapeError(cat("arange: ", count, " elements are too many"));
  }
  return fill_real("arange", std::max<int64_t>(0, static_cast<int64_t>(count)), {first, by}, dtype,
                   device);
}

Tensor linspace(double start, double stop, int64_t count, DType dtype, bool endpoint,
                Device device) {
  const trace::Span span("linspace", "op");
  if (count < 0) throw ShapeError(cat("linspace: num must not be negative, given ", count));
  jit::RealSequence sequence = evenly_spaced(start, stop, count, endpoint);
  sequence.is_floored = is_integer(dtype) ? 1 : 0;  // as NumPy: rounded down, not towards zero
  return fill_real("linspace", count, sequence, dtype, device);
}

Tensor logspace(double start, double stop, int64_t count, double base, DType dtype, bool endpoint,
                Device device) {
  const trace::Span span("logspace", "op");
  if (count < 0) throw ShapeError(cat("logspace: num must not be negative, given ", count));
  const jit::PowerSequence sequence{power_base(base), evenly_spaced(start, stop, count, endpoint)};
  check_powers(sequence, count, dtype);
  const Tensor result = empty({count}, dtype, device);
  kFillPowers(device, result, sequence);
  return result;
}

}  // namespace cuop
