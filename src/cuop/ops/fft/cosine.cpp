// Cosine transforms of types II and III by a transform of real numbers of the same length (J.
// Makhoul: A fast cosine transform in one and two dimensions, IEEE Trans. ASSP 28, 1980): the even
// elements in order, then the odd ones backwards.
#include <cmath>
#include <numbers>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/fft/fft.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"

namespace cuop {
namespace {

DType real_result(const char* who, const Tensor& x) {
  if (is_complex(x.dtype())) {
    throw DTypeError(cat(who, ": the input must be real, it is ", x.dtype()));
  }
  return real_dtype(complex_dtype(compute_dtype(to_inexact(x.dtype()))));
}

/// An axis more is needed on the way.
void check_room(const char* who, const Tensor& x) {
  if (x.ndim() < kMaxDims) return;
  throw ShapeError(cat(who, ": x has ", x.ndim(), " dimensions, allowed are up to ", kMaxDims - 1));
}

/// The axis counted from the front, with at least one element.
int axis_of(const char* who, const Tensor& x, int64_t axis) {
  const int64_t found = axis < 0 ? axis + x.ndim() : axis;
  if (found < 0 || found >= x.ndim()) {
    throw ShapeError(
        cat(who, ": axis ", axis, " is out of range for a tensor of ", x.ndim(), " dimensions"));
  }
  if (x.shape(static_cast<int>(found)) < 1) {
    throw ShapeError(cat(who, ": the length along axis ", found, " is 0, at least 1 is needed"));
  }
  return static_cast<int>(found);
}

/// exp(sign pi i k / (2 n)) for k = 0 ... n / 2, along `axis`.
Tensor turns(const Tensor& like, int axis, double sign, DType dtype) {
  const int64_t n = like.shape(axis), count = n / 2 + 1;
  std::vector<std::complex<double>> values;
  for (int64_t k = 0; k < count; ++k) {
    const double angle =
        sign * std::numbers::pi * static_cast<double>(k) / (2.0 * static_cast<double>(n));
    values.push_back(std::polar(1.0, angle));
  }
  Shape shape = like.shape();
  for (int i = 0; i < shape.ndim(); ++i) shape[i] = i == axis ? count : 1;
  using Values = std::span<const std::complex<double>>;
  return to_device(cast(from_values<std::complex<double>>(shape, Values(values)), dtype),
                   like.device());
}

/// The even elements and the odd ones backwards: parts of `natural` and where they lie in `mixed`.
template <class Copy>
void for_both_halves(const Tensor& natural, const Tensor& mixed, int axis, Copy&& copy) {
  const int64_t n = natural.shape(axis), even = (n + 1) / 2;
  copy(slice(natural, axis, 0, n, 2), slice(mixed, axis, 0, even));
  if (n == 1) return;
  copy(slice(natural, axis, n - 1 - n % 2, std::nullopt, -2), slice(mixed, axis, even, n));
}

}  // namespace

Tensor dct2(const Tensor& x, int64_t axis_given, const Tensor* out) {
  const DType dtype = real_result("dct2", x);
  const int axis = axis_of("dct2", x, axis_given);
  check_room("dct2", x);
  const int64_t n = x.shape(axis), half = n / 2 + 1;
  const Tensor result = prepare_output("dct2", out, x.shape(), dtype, x.device());
  const Tensor mixed = empty(x.shape(), dtype, x.device());
  for_both_halves(x, mixed, axis,
                  [](const Tensor& from, const Tensor& to) { copy_into(to, from); });
  const Tensor spectrum = rfft(mixed, {}, axis);
  const Tensor parts =
      as_real(multiply(spectrum, turns(x, axis, -1.0, complex_dtype(dtype)), &spectrum));
  const Tensor lower = slice(result, axis, 0, half), upper = slice(result, axis, half, n);
  multiply(select(parts, -1, 0), 2.0, &lower);
  if (upper.size() > 0) {
    multiply(slice(select(parts, -1, 1), axis, n - half, 0, -1), -2.0, &upper);
  }
  return result;
}

Tensor dct3(const Tensor& x, int64_t axis_given, const Tensor* out) {
  const DType dtype = real_result("dct3", x);
  const int axis = axis_of("dct3", x, axis_given);
  check_room("dct3", x);
  const int64_t n = x.shape(axis), half = n / 2 + 1;
  const Tensor result = prepare_output("dct3", out, x.shape(), dtype, x.device());
  Shape shape = x.shape();
  shape[axis] = half;
  const Tensor spectrum = zeros(shape, complex_dtype(dtype), x.device());
  copy_into(select(as_real(spectrum), -1, 0), slice(x, axis, 0, half));
  if (half > 1) {
    const Tensor imaginary = slice(select(as_real(spectrum), -1, 1), axis, 1, half);
    multiply(slice(x, axis, n - 1, n - half, -1), -1.0, &imaginary);
  }
  multiply(spectrum, turns(x, axis, 1.0, spectrum.dtype()), &spectrum);
  const Tensor mixed = irfft(spectrum, n, axis, FftNorm::kForward);
  for_both_halves(result, mixed, axis,
                  [](const Tensor& to, const Tensor& from) { copy_into(to, from); });
  return result;
}

}  // namespace cuop
