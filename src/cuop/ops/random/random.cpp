#include "cuop/ops/random/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "cuop/backend/slot.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/dense_output.h"
#include "cuop/ops/output.h"
#include "cuop/ops/random/random_kernels.h"
#include "cuop/ops/sort/sort.h"

namespace cuop {

using kernels::Distribution;
using kernels::Draw;

namespace {

constexpr backend::Slot kFill{"random", &kernels::random_fill_cpu, &kernels::random_fill_cuda};

void check_floating(const char* who, DType dtype) {
  visit_dtype(FloatingTypes{}, dtype, who, [](auto) {});
}

Tensor fill(const char* who, const Shape& shape, const Draw& draw, const RandomOptions& options) {
  const trace::Span span(who, "op");
  const Tensor result = prepare_output(who, options.out, shape, options.dtype, options.device);
  Generator& generator = options.generator != nullptr ? *options.generator : default_generator();
  // float64 and integers use 64 bits each, the other floats 32, of the 128 of a counter value.
  const bool is_wide = is_integer(options.dtype) || options.dtype == DType::kFloat64;
  const int64_t each = is_wide ? 2 : 4;
  const auto blocks = static_cast<uint64_t>(divide_up(result.size(), each));
  const Generator::Ticket ticket = generator.take(blocks);
  if (result.size() == 0) return result;
  fill_dense(result, options.dtype,
             [&](const Tensor& dense) { kFill(options.device, dense, draw, ticket); });
  return result;
}

Tensor draw_normal(const char* who, const Shape& shape, double mean, double std,
                   const RandomOptions& options) {
  check_floating(who, options.dtype);
  if (!(std >= 0.0)) throw ExecutionError(cat(who, ": std is ", std, ", it must be 0 or more"));
  return fill(who, shape, {Distribution::kNormal, mean, std}, options);
}

/// The largest number of T below `high` as T's numbers are drawn: in double or in float.
template <class T>
double largest_below(double high) {
  if constexpr (std::is_same_v<T, double>) {
    return std::nextafter(high, -std::numeric_limits<double>::infinity());
  } else if constexpr (std::is_same_v<T, float>) {
    return std::nextafter(static_cast<float>(high), -std::numeric_limits<float>::infinity());
  } else {
    const auto end = static_cast<float>(high);
    T near(end);
    // One step of the 16-bit pattern is one step of the value, downwards for positive ones.
    while (static_cast<float>(near) >= end) {
      const bool is_zero = static_cast<float>(near) == 0.0f;
      near.bits = static_cast<uint16_t>(is_zero                           ? 0x8001u
                                        : static_cast<float>(near) > 0.0f ? near.bits - 1u
                                                                          : near.bits + 1u);
    }
    return static_cast<float>(near);
  }
}

bool is_below(const Scalar& a, const Scalar& b) {
  if (a.is_large() || b.is_large()) {
    return b.is_large() && (!a.is_large() || a.to_bits64() < b.to_bits64());
  }
  return a.to_int64() < b.to_int64();
}

/// Integers from `low` to `last`; `range` is what errors call that.
Tensor draw_integers(const std::string& range, const Scalar& low, const Scalar& last,
                     const Shape& shape, const RandomOptions& options) {
  visit_dtype(IntegerTypes{}, options.dtype, "randint", [](auto) {});
  if (!low.fits(options.dtype) || !last.fits(options.dtype)) {
    throw ExecutionError(cat("randint: ", options.dtype, " does not hold the range ", range));
  }
  Draw draw{Distribution::kInteger};
  draw.low = static_cast<int64_t>(low.to_bits64());
  draw.range = last.to_bits64() - low.to_bits64() + 1;
  return fill("randint", shape, draw, options);
}

}  // namespace

Tensor normal(const Shape& shape, double mean, double std, const RandomOptions& options) {
  return draw_normal("normal", shape, mean, std, options);
}

Tensor random(const Shape& shape, double mean, double std, const RandomOptions& options) {
  return draw_normal("random", shape, mean, std, options);
}

Tensor random(const Shape& shape, DType dtype, double mean, double std) {
  return random(shape, mean, std, {.dtype = dtype});
}

Tensor uniform(const Shape& shape, double low, double high, const RandomOptions& options) {
  check_floating("uniform", options.dtype);
  if (!(low < high) || !std::isfinite(low) || !std::isfinite(high)) {
    throw ExecutionError(
        cat("uniform: [", low, ", ", high, ") must be a finite range with low < high"));
  }
  // What the dtype makes of the ends decides.
  const bool is_empty =
      visit_dtype(FloatingTypes{}, options.dtype, "uniform", [&]<class T>(TypeTag<T>) {
        const auto round = [](double value) {
          if constexpr (std::is_same_v<T, double>) {
            return value;
          } else {
            return static_cast<double>(static_cast<float>(T(static_cast<float>(value))));
          }
        };
        return !(round(low) < round(high)) || !std::isfinite(round(high)) ||
               !std::isfinite(round(low));
      });
  if (is_empty) {
    throw ExecutionError(
        cat("uniform: [", low, ", ", high, ") is no finite range in ", options.dtype));
  }
  const double last = visit_dtype(FloatingTypes{}, options.dtype, "uniform",
                                  [&]<class T>(TypeTag<T>) { return largest_below<T>(high); });
  return fill("uniform", shape, {Distribution::kUniform, low, high, last}, options);
}

Tensor randint(int64_t low, int64_t high, const Shape& shape, const RandomOptions& options) {
  const std::string range = cat("[", low, ", ", high, ")");
  if (low >= high) throw ExecutionError(cat("randint: the range ", range, " is empty"));
  return draw_integers(range, low, high - 1, shape, options);
}

Tensor randint_through(const Scalar& low, const Scalar& last, const Shape& shape,
                       const RandomOptions& options) {
  const std::string range = cat("from ", low, " to ", last);
  if (!low.is_integer() || !last.is_integer()) {
    throw DTypeError(cat("randint: the range is ", range, "; needed are integers"));
  }
  if (is_below(last, low)) throw ExecutionError(cat("randint: the range ", range, " is empty"));
  return draw_integers(range, low, last, shape, options);
}

Tensor permutation(int64_t n, const RandomOptions& options) {
  if (n < 0) throw ShapeError(cat("permutation: n is ", n, ", it must not be negative"));
  const Tensor result =
      prepare_output("permutation", options.out, {n}, DType::kInt64, options.device);
  // Sorting by 64-bit keys: equal keys (chance below n^2 / 2^65) stay in order.
  RandomOptions key_options = options;
  key_options.dtype = DType::kInt64;
  key_options.out = nullptr;
  argsort(fill("permutation", {n}, {Distribution::kInteger}, key_options), 0, false, &result);
  return result;
}

}  // namespace cuop
