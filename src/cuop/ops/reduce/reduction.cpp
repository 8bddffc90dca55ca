#include "cuop/ops/reduce/reduction.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cuop/core/enum_names.h"
#include "cuop/core/text.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"

namespace cuop {

namespace {
constexpr const char* kModeNames[] = {"plain", "compensated", "exact"};
}

const char* name(SumMode mode) { return kModeNames[static_cast<int>(mode)]; }

SumMode parse_sum_mode(std::string_view text) {
  return parse_name<SumMode>("sum mode:", kModeNames, text);
}

namespace {

[[noreturn]] void refuse(const char* who, DType dtype, const char* allowed) {
  throw DTypeError(cat(who, ": dtype ", dtype, " is not supported; supported are ", allowed));
}

DType accumulator(DType dtype) {
  if (is_unsigned_integer(dtype)) return DType::kUInt64;
  return is_bool(dtype) || is_integer(dtype) ? DType::kInt64 : compute_dtype(dtype);
}

/// The element type of max and min.
DType ordered_element(DType dtype) {
  if (is_bool(dtype)) return DType::kUInt8;
  return is_integer(dtype) ? dtype : compute_dtype(dtype);
}

ReduceKind sum_fold(SumMode mode) {
  if (mode == SumMode::kCompensated) return ReduceKind::kCompensatedSum;
  return mode == SumMode::kExact ? ReduceKind::kExactSum : ReduceKind::kSum;
}

void scaled_square(double* data, int64_t n, double scale) {
  for (int64_t i = 0; i < n; ++i) data[i] = (data[i] * scale) * (data[i] * scale);
}
void power(double* data, int64_t n, double exponent) {
  for (int64_t i = 0; i < n; ++i) data[i] = std::pow(data[i], exponent);
}
/// The exponent a whole number; squares of a few elements at a time.
void whole_power(double* data, int64_t n, double exponent) {
  constexpr int64_t kFew = 32;
  for (int64_t begin = 0; begin < n; begin += kFew) {
    const int64_t count = std::min(kFew, n - begin);
    double* const few = data + begin;
    double base[kFew];
    std::copy_n(few, count, base);
    for (auto left = static_cast<int>(exponent) - 1; left != 0; left >>= 1) {
      for (int64_t k = 0; (left & 1) != 0 && k < count; ++k) few[k] *= base[k];
      for (int64_t k = 0; k < count; ++k) base[k] *= base[k];
    }
  }
}
void root(double* data, int64_t n, double) {
  for (int64_t i = 0; i < n; ++i) data[i] = std::sqrt(data[i]);
}
void nonzero(double* data, int64_t n, double) {
  for (int64_t i = 0; i < n; ++i) data[i] = data[i] != 0.0 ? 1.0 : 0.0;
}

/// Beyond it products round more often than a power is off.
constexpr double kMostWholeOrder = 8;

FoldInput norm_input(double order) {
  FoldInput input{ReduceKind::kSum, DType::kFloat64, LoadMap::kMagnitude, nullptr, order};
  if (std::isinf(order)) {
    input.kind = order > 0 ? ReduceKind::kMax : ReduceKind::kMin;
  } else if (order == 2.0) {
    input.map = LoadMap::kSquare;
  } else if (order == 0.0) {
    input.transform = nonzero;
  } else if (order == 0.5) {
    input.transform = root;
  } else if (order > 1.0 && order <= kMostWholeOrder && order == std::floor(order)) {
    input.transform = whole_power;
  } else if (order != 1.0) {
    input.transform = power;
  }
  return input;
}

/// An integer of 128 bits in two's complement.
std::string decimal(uint64_t high, uint64_t low) {
  __extension__ typedef unsigned __int128 Wide;
  Wide rest = (Wide{high} << 64) | low;
  const bool is_negative = high >> 63 != 0;
  if (is_negative) rest = -rest;
  std::string text;
  do {
    text.insert(text.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
    rest /= 10;
  } while (rest != 0);
  return is_negative ? "-" + text : text;
}

/// The values of states that are not values themselves.
template <class State>
Tensor map_states(const Tensor& states, const jit::Finish& finish) {
  const int64_t n = states.nbytes() / static_cast<int64_t>(sizeof(State));
  const Tensor values = empty({n}, DType::kFloat64);
  const auto* state = static_cast<const State*>(states.data());
  auto* value = values.data<double>();
  for (int64_t i = 0; i < n; ++i) value[i] = jit::finished(state[i], finish);
  return values;
}

/// Exact sums of integers; OverflowError where the dtype, int64 or uint64, does not hold one.
Tensor integer_values(const char* who, const Tensor& states, DType dtype) {
  const int64_t n = states.nbytes() / static_cast<int64_t>(sizeof(ExactSum));
  const Tensor values = empty({n}, dtype);
  const bool is_signed = dtype == DType::kInt64;
  for (int64_t i = 0; i < n; ++i) {
    ExactSum sum = static_cast<const ExactSum*>(states.data())[i];
    sum.normalize();
    const uint64_t low = sum.integer_bits(0), high = sum.integer_bits(1);
    static_cast<uint64_t*>(values.data())[i] = low;
    const uint64_t beyond = is_signed && low >> 63 != 0 ? ~uint64_t{0} : 0;
    if (high == beyond) continue;
    const IntegerRange range = integer_range(dtype);
    throw OverflowError(cat(who, ": the exact sum ", decimal(high, low), " does not fit dtype ",
                            dtype, ", which holds ", range.low, " to ", range.high,
                            "; mode \"plain\" gives its low 64 bits"));
  }
  return values;
}

/// Sums, or what they are divided by a count. They begin at 0, as NumPy's do: that of negative
/// zeros is no negative zero.
template <class Real>
void finish_sums(const Tensor& values, double divisor) {
  auto* value = values.data<Real>();
  for (int64_t i = 0; i < values.size(); ++i) {
    value[i] = (value[i] + Real(0)) / static_cast<Real>(divisor);
  }
}

double root(double power_sum, double order) {
  if (order == 2.0) return std::sqrt(power_sum);
  return order == 0.0 || order == 1.0 || std::isinf(order) ? power_sum
                                                           : std::pow(power_sum, 1.0 / order);
}

}  // namespace

DType result_dtype(const char* who, const Reduction& reduction, DType dtype) {
  switch (reduction.kind) {
    case ReduceKind::kSum:
    case ReduceKind::kProd:
      return is_floating(dtype) || is_complex(dtype) ? dtype : accumulator(dtype);
    case ReduceKind::kMean:
      return to_inexact(dtype);
    case ReduceKind::kMax:
    case ReduceKind::kMin:
      if (is_complex(dtype)) refuse(who, dtype, "bool, integers and real floats");
      return dtype;
    case ReduceKind::kAny:
    case ReduceKind::kAll:
      return DType::kBool;
    default:
      return real_dtype(to_inexact(dtype));
  }
}

FoldInput scaled_squares(double scale) {
  return {ReduceKind::kSum, DType::kFloat64, LoadMap::kValue, scaled_square, scale};
}

FoldInput fold_input(const Reduction& reduction, DType dtype) {
  const bool is_inexact = is_floating(dtype) || is_complex(dtype);
  switch (reduction.kind) {
    case ReduceKind::kSum:
      if (!is_inexact) {
        const bool may_overflow = reduction.mode == SumMode::kExact && itemsize(dtype) > 2;
        return {may_overflow ? ReduceKind::kExactSum : ReduceKind::kSum, accumulator(dtype)};
      }
      return {sum_fold(reduction.mode), compute_dtype(dtype)};
    case ReduceKind::kMean: {
      const bool is_exact = reduction.mode == SumMode::kExact;
      const DType otherwise = is_exact ? accumulator(dtype) : DType::kFloat64;
      return {sum_fold(reduction.mode), is_inexact ? compute_dtype(dtype) : otherwise};
    }
    case ReduceKind::kProd:
      return {ReduceKind::kProd, accumulator(dtype)};
    case ReduceKind::kMax:
    case ReduceKind::kMin: {
      FoldInput input{reduction.kind, ordered_element(dtype)};
      const uint8_t largest = is_bool(dtype) ? 1 : std::numeric_limits<uint8_t>::max();
      if (input.element == DType::kUInt8) {
        input.last = reduction.kind == ReduceKind::kMax ? largest : uint8_t{0};
      }
      return input;
    }
    case ReduceKind::kAny:
      return {
          .kind = ReduceKind::kMax, .element = DType::kUInt8, .map = LoadMap::kNonzero, .last = 1};
    case ReduceKind::kAll:
      return {
          .kind = ReduceKind::kMin, .element = DType::kUInt8, .map = LoadMap::kNonzero, .last = 0};
    case ReduceKind::kNorm:
      return norm_input(reduction.parameter);
    default:
      return {ReduceKind::kMoments, to_inexact(dtype)};
  }
}

jit::Finish finish_of(const Reduction& reduction, int64_t count, DType result) {
  return {static_cast<uint64_t>(count), reduction.kind == ReduceKind::kMean,
          reduction.kind == ReduceKind::kStd, reduction.parameter,
          visit_dtype(RealTypes{}, real_dtype(result), "reduce",
                      []<class T>(TypeTag<T>) { return format_of<T>; })};
}

Tensor finish_states(const Reduction& reduction, const FoldInput& input, const Tensor& states,
                     int64_t count, DType result) {
  const bool is_mean = reduction.kind == ReduceKind::kMean;
  const jit::Finish finish = finish_of(reduction, count, result);
  switch (input.kind) {
    case ReduceKind::kCompensatedSum:
      return map_states<Compensated<double>>(states, finish);
    case ReduceKind::kExactSum:
      if (is_integer(result)) return integer_values(name(reduction.kind), states, result);
      return map_states<ExactSum>(states, finish);
    case ReduceKind::kMoments:
      return map_states<Moments>(states, finish);
    default:
      break;
  }
  // States that are values: the same memory. An offset can only be that of the result itself.
  const Layout layout{{states.nbytes() / itemsize(input.element)}, {1}, states.layout().offset};
  const Tensor values(states.storage(), layout, input.element);
  if (input.kind == ReduceKind::kSum && !is_integer(input.element)) {
    const double divisor = is_mean ? static_cast<double>(count) : 1.0;
    const Tensor parts = as_real(values);
    parts.dtype() == DType::kFloat32 ? finish_sums<float>(parts, divisor)
                                     : finish_sums<double>(parts, divisor);
  }
  if (reduction.kind == ReduceKind::kNorm) {
    auto* value = values.data<double>();
    for (int64_t i = 0; i < values.size(); ++i) value[i] = root(value[i], reduction.parameter);
  }
  return values;
}

void fill_empty(const char* who, const Reduction& reduction, const Tensor& result) {
  switch (reduction.kind) {
    case ReduceKind::kMax:
    case ReduceKind::kMin:
      throw ShapeError(
          cat(who, ": there is no element to choose from; an empty reduction has no ", "identity"));
    case ReduceKind::kMean:
    case ReduceKind::kVar:
    case ReduceKind::kStd:
      return fill(result, std::numeric_limits<double>::quiet_NaN());
    case ReduceKind::kProd:
    case ReduceKind::kAll:
      return fill(result, 1);
    case ReduceKind::kNorm:
      if (reduction.parameter < 0) {
        return fill(result, std::numeric_limits<double>::infinity());
      }
      [[fallthrough]];
    default:
      return fill(result, 0);
  }
}

void check_takes_axis(const char* who, int ndim) {
  if (ndim < kMaxDims) return;
  throw ShapeError(
      cat(who, ": over no axis x may have at most ", kMaxDims - 1, " dimensions, it has ", ndim));
}

Tensor with_own_axis(const char* who, const Tensor& x) {
  check_takes_axis(who, x.ndim());
  return unsqueeze(x, x.ndim());
}

}  // namespace cuop
