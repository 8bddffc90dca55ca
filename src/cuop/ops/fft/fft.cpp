#include "cuop/ops/fft/fft.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "cuop/backend/slot.h"
#include "cuop/core/enum_names.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/fft/fft_kernels.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/output.h"

namespace cuop {

using backend::TransformKind;
using spectral::LineInput;
using spectral::LineOutput;
using spectral::LinePass;

namespace {

constexpr backend::Slot<void(const LinePass&)> kLines{"fft", &spectral::run_lines_cpu,
                                                      &spectral::run_lines_cuda};

enum class Family : uint8_t { kComplex, kFromReal, kToReal };

struct TransformSpec {
  const char* who;
  Family family = Family::kComplex;
  bool is_inverse = false;
  std::vector<int> axes;         ///< normalised
  std::vector<int64_t> lengths;  ///< of the transforms (the real side's)
  double scale = 1.0;
};

/// One pass over one axis.
struct Step {
  int axis = 0;
  TransformKind kind = TransformKind::kForward;
  int64_t n = 1;
  int64_t out_count = 1;
  LineInput input = LineInput::kPlain;
  LineOutput output = LineOutput::kPlain;
  double scale = 1.0;
};

bool computes_in_double(DType dtype) {
  return real_dtype(compute_dtype(to_inexact(dtype))) == DType::kFloat64;
}
DType real_type(bool is_double) { return is_double ? DType::kFloat64 : DType::kFloat32; }
DType complex_type(bool is_double) { return is_double ? DType::kComplex128 : DType::kComplex64; }

void refuse_complex(const char* who, const Tensor& x) {
  if (is_complex(x.dtype())) {
    throw DTypeError(cat(who, ": the input must be real, it is ", x.dtype()));
  }
}

/// The pass over the axis of the first step, joined by those of the others.
LinePass make_pass(std::span<const Step> steps, const Tensor& in, const Tensor& out) {
  const Step& step = steps.front();
  const int axis = step.axis;
  LinePass pass;
  pass.kind = step.kind;
  pass.is_double = itemsize(real_dtype(in.dtype())) == 8;
  pass.n = step.n;
  pass.in_count = in.shape(axis);
  pass.out_count = step.out_count;
  pass.input = step.input;
  pass.output = step.output;
  pass.scale = steps.back().scale;
  pass.device = in.device();
  pass.in = in.data();
  pass.out = out.data();
  pass.in_owner = in;
  pass.out_owner = out;
  pass.in_stride = in.strides()[axis];
  pass.out_stride = out.strides()[axis];
  for (int other = 0; other < in.ndim(); ++other) {
    if (std::ranges::any_of(steps, [&](const Step& each) { return each.axis == other; })) continue;
    pass.others.push_back(in.shape(other));
    pass.in_strides.push_back(in.strides()[other]);
    pass.out_strides.push_back(out.strides()[other]);
  }
  for (const Step& each : steps.subspan(1)) {
    pass.joined.push_back({each.n, in.strides()[each.axis], out.strides()[each.axis]});
  }
  return pass;
}

/// How many of the first steps a GPU makes in one call from `in` to `out`.
size_t steps_in_one_call(std::span<const Step> steps, const Tensor& in, const Tensor& out) {
  if (in.device().type != DeviceType::kCuda) return 1;
  const Step& first = steps.front();
  Shape shape = in.shape();
  shape[first.axis] = first.out_count;
  const bool is_from_real = first.kind == TransformKind::kRealForward;
  if (shape != out.shape() || is_complex(in.dtype()) == is_from_real || !is_complex(out.dtype())) {
    return 1;
  }
  const TransformKind direction = is_from_real ? TransformKind::kForward : first.kind;
  size_t count = 1;
  while (count < steps.size() && steps[count].kind == direction) ++count;
  const auto is_one_call = [&](std::span<const Step> all) {
    return std::ranges::all_of(all, [&](const Step& s) { return in.shape(s.axis) == s.n; }) &&
           spectral::is_one_call_cuda(make_pass(all, in, out));
  };
  while (count > 1 && !is_one_call(steps.first(count))) --count;
  return count;
}

/// Runs the steps from `x` (already of the computing dtype) to `out`, in place once the shape is
/// final.
void run_steps(const std::vector<Step>& steps, const Tensor& x, const Tensor& out) {
  Tensor current = x;
  for (std::span<const Step> rest = steps; !rest.empty();) {
    const Step& step = rest.front();
    Shape shape = current.shape();
    shape[step.axis] = step.out_count;
    const bool is_double = itemsize(real_dtype(current.dtype())) == 8;
    const bool is_real = spectral::gives_real(step.kind, step.output);
    const DType dtype = is_real ? real_type(is_double) : complex_type(is_double);
    const bool is_to_out = rest.size() == 1 || (shape == out.shape() && dtype == out.dtype());
    const Tensor next = is_to_out ? out : empty(shape, dtype, out.device());
    const size_t count = next.size() == 0 ? 1 : steps_in_one_call(rest, current, next);
    if (next.size() > 0) kLines(out.device(), make_pass(rest.first(count), current, next));
    current = next;
    rest = rest.subspan(count);
  }
}

/// A real line's whole spectrum comes from its half; the inverse's is the conjugate.
Step complex_step(int axis, int64_t n, bool is_inverse, bool is_real_input) {
  Step step{axis, is_inverse ? TransformKind::kBackward : TransformKind::kForward, n, n};
  if (is_real_input) {
    step.kind = TransformKind::kRealForward;
    step.output = is_inverse ? LineOutput::kMirroredConjugate : LineOutput::kMirrored;
  }
  return step;
}

std::vector<Step> make_steps(const TransformSpec& spec, bool is_real_input) {
  std::vector<Step> steps;
  const size_t count = spec.axes.size();
  const auto complex_axis = [&](size_t i, bool is_real) {
    steps.push_back(complex_step(spec.axes[i], spec.lengths[i], spec.is_inverse, is_real));
  };
  switch (spec.family) {
    case Family::kComplex:
      for (size_t i = count; i-- > 0;) complex_axis(i, is_real_input && i + 1 == count);
      break;
    case Family::kFromReal: {
      const int64_t n = spec.lengths.back();
      steps.push_back({spec.axes.back(), TransformKind::kRealForward, n, n / 2 + 1});
      for (size_t i = count - 1; i-- > 0;) complex_axis(i, false);
      break;
    }
    case Family::kToReal: {
      for (size_t i = 0; i + 1 < count; ++i) complex_axis(i, false);
      const int64_t n = spec.lengths.back();
      steps.push_back({spec.axes.back(), TransformKind::kRealBackward, n, n});
      break;
    }
  }
  if (!steps.empty()) steps.back().scale = spec.scale;
  return steps;
}

double norm_scale(const TransformSpec& spec, FftNorm norm) {
  double total = 1.0;
  for (int64_t n : spec.lengths) total *= static_cast<double>(n);
  if (norm == FftNorm::kOrtho) return 1.0 / std::sqrt(total);
  return (norm == FftNorm::kBackward) == spec.is_inverse ? 1.0 / total : 1.0;
}

void check_length(const char* who, int64_t n, int64_t axis) {
  if (n < 1) {
    throw ShapeError(
        cat(who, ": the length along axis ", axis, " is ", n, ", at least 1 is needed"));
  }
}

Tensor transform(TransformSpec spec, const Tensor& x, FftNorm norm, const Tensor* out) {
  const trace::Span span(spec.who, "op");
  if (spec.family == Family::kFromReal) refuse_complex(spec.who, x);
  for (size_t i = 0; i < spec.axes.size(); ++i) {
    check_length(spec.who, spec.lengths[i], spec.axes[i]);
  }
  spec.scale = norm_scale(spec, norm);
  const bool is_double = computes_in_double(x.dtype());
  const bool stays_real = !is_complex(x.dtype()) && spec.family != Family::kToReal;
  const DType in_dtype = stays_real ? real_type(is_double) : complex_type(is_double);
  const DType out_dtype =
      spec.family == Family::kToReal ? real_type(is_double) : complex_type(is_double);
  Shape shape = x.shape();
  for (size_t i = 0; i < spec.axes.size(); ++i) shape[spec.axes[i]] = spec.lengths[i];
  if (spec.family == Family::kFromReal) {
    shape[spec.axes.back()] = spec.lengths.back() / 2 + 1;
  }
  int64_t count = 1;
  for (const int64_t length : shape) {
    if (!__builtin_mul_overflow(count, length, &count)) continue;
    throw ShapeError(cat(spec.who, ": lengths ", shape, " have more elements than 64 bits count"));
  }
  const Tensor result = prepare_output(spec.who, out, shape, out_dtype, x.device());
  check_no_overlap(spec.who, result, x, "x");
  const std::vector<Step> steps = make_steps(spec, stays_real);
  if (steps.empty()) {
    copy_into(result, x);
  } else {
    run_steps(steps, cast(x, in_dtype), result);
  }
  return result;
}

Tensor transform_one(const char* who, Family family, bool is_inverse, const Tensor& x, FftSize n,
                     int64_t axis, FftNorm norm, const Tensor* out) {
  const int at = normalize_axis(axis, x.ndim(), who);
  const int64_t length = x.shape(at);
  const int64_t natural = family == Family::kToReal ? 2 * (length - 1) : length;
  return transform({who, family, is_inverse, {at}, {n.value_or(natural)}}, x, norm, out);
}

Tensor transform_many(const char* who, Family family, bool is_inverse, const Tensor& x,
                      const FftDims& s, const FftDims& axes, FftNorm norm, const Tensor* out) {
  TransformSpec spec{who, family, is_inverse, {}, {}};
  const int count = axes ? axes->ndim() : s ? s->ndim() : x.ndim();
  if (axes && s && axes->ndim() != s->ndim()) {
    throw ShapeError(cat(who, ": s = ", *s, " and axes = ", *axes, " must have one length"));
  }
  if (count > x.ndim() || (count == 0 && family != Family::kComplex)) {
    throw ShapeError(cat(who, ": ", count, " axes do not fit a tensor of ", x.ndim(), " dimensions",
                         family == Family::kComplex ? "" : "; at least 1 is needed"));
  }
  for (int i = 0; i < count; ++i) {
    const int axis = axes ? normalize_axis((*axes)[i], x.ndim(), who) : x.ndim() - count + i;
    if (has_axis(spec.axes, axis)) {
      throw ShapeError(cat(who, ": an axis is given twice in ", *axes));
    }
    spec.axes.push_back(axis);
    const bool is_given = s && (*s)[i] != -1;
    int64_t length = is_given ? (*s)[i] : x.shape(axis);
    if (!is_given && family == Family::kToReal && i + 1 == count) length = 2 * (length - 1);
    spec.lengths.push_back(length);
  }
  return transform(std::move(spec), x, norm, out);
}

/// A transform of real lines to as long ones of real numbers, by the one that `input` names.
Tensor real_transform(const char* who, const Tensor& x, int64_t axis, LineInput input,
                      LineOutput output, const Tensor* out) {
  const trace::Span span(who, "op");
  refuse_complex(who, x);
  const int at = normalize_axis(axis, x.ndim(), who);
  const int64_t n = x.shape(at), least = input == LineInput::kEven ? 2 : 1;
  if (n < least) {
    throw ShapeError(cat(who, ": the length along axis ", at, " is ", n, ", at least ", least,
                         least == 1 ? " is needed" : " are needed"));
  }
  const DType dtype = real_type(computes_in_double(x.dtype()));
  const Tensor result = prepare_output(who, out, x.shape(), dtype, x.device());
  check_same_or_no_overlap(who, result, x, "x");
  Step step{.axis = at,
            .kind = TransformKind::kRealForward,
            .n = n,
            .out_count = n,
            .input = input,
            .output = output};
  if (input == LineInput::kOdd) step.n = 2 * (n + 1);
  if (input == LineInput::kEven) step.n = 2 * (n - 1);
  if (input == LineInput::kCosineSums) step.kind = TransformKind::kRealBackward;
  run_steps({step}, cast(x, dtype), result);
  return result;
}

/// k / (n d) for k = 0, 1, ..., `positive`-1 and then -n/2, ..., -1 until `count` are there.
Tensor frequencies(const char* who, int64_t n, double d, int64_t count, int64_t positive,
                   Device device) {
  if (n < 1) throw ShapeError(cat(who, ": n is ", n, ", at least 1 is needed"));
  if (d == 0.0) throw ExecutionError(cat(who, ": the sample spacing d must not be 0"));
  const Tensor result = empty({count}, DType::kFloat64);
  auto* values = result.data<double>();
  const double unit = 1.0 / (static_cast<double>(n) * d);
  for (int64_t k = 0; k < count; ++k) {
    values[k] = static_cast<double>(k < positive ? k : k - n) * unit;
  }
  return to_device(result, device);
}

Tensor shift(const char* who, const Tensor& x, const FftDims& axes, bool is_inverse) {
  std::vector<int> chosen;
  if (!axes) {
    chosen = normalize_axes({}, x.ndim(), who);
  } else if (!axes->empty()) {
    chosen = normalize_axes({axes->begin(), axes->end()}, x.ndim(), who);
  }
  if (chosen.empty()) return clone(x);
  std::vector<int64_t> shifts, along;
  for (int axis : chosen) {
    const int64_t half = x.shape(axis) / 2;
    shifts.push_back(is_inverse ? -half : half);
    along.push_back(axis);
  }
  return roll(x, shifts, along);
}

}  // namespace

FftNorm parse_fft_norm(std::string_view text, const char* who) {
  return parse_name<FftNorm>(cat(who, ": norm"), {"backward", "forward", "ortho"}, text);
}

Tensor fft(const Tensor& x, FftSize n, int64_t axis, FftNorm norm, const Tensor* out) {
  return transform_one("fft", Family::kComplex, false, x, n, axis, norm, out);
}
Tensor ifft(const Tensor& x, FftSize n, int64_t axis, FftNorm norm, const Tensor* out) {
  return transform_one("ifft", Family::kComplex, true, x, n, axis, norm, out);
}
Tensor rfft(const Tensor& x, FftSize n, int64_t axis, FftNorm norm, const Tensor* out) {
  return transform_one("rfft", Family::kFromReal, false, x, n, axis, norm, out);
}
Tensor irfft(const Tensor& x, FftSize n, int64_t axis, FftNorm norm, const Tensor* out) {
  return transform_one("irfft", Family::kToReal, true, x, n, axis, norm, out);
}

Tensor hfft(const Tensor& x, FftSize n, int64_t axis, FftNorm norm, const Tensor* out) {
  return transform_one("hfft", Family::kToReal, false, conj(x), n, axis, norm, out);
}
Tensor ihfft(const Tensor& x, FftSize n, int64_t axis, FftNorm norm, const Tensor* out) {
  const Tensor result = transform_one("ihfft", Family::kFromReal, true, x, n, axis, norm, out);
  return conj(result, &result);
}

Tensor fftn(const Tensor& x, const FftDims& s, const FftDims& axes, FftNorm norm,
            const Tensor* out) {
  return transform_many("fftn", Family::kComplex, false, x, s, axes, norm, out);
}
Tensor ifftn(const Tensor& x, const FftDims& s, const FftDims& axes, FftNorm norm,
             const Tensor* out) {
  return transform_many("ifftn", Family::kComplex, true, x, s, axes, norm, out);
}
Tensor rfftn(const Tensor& x, const FftDims& s, const FftDims& axes, FftNorm norm,
             const Tensor* out) {
  return transform_many("rfftn", Family::kFromReal, false, x, s, axes, norm, out);
}
Tensor irfftn(const Tensor& x, const FftDims& s, const FftDims& axes, FftNorm norm,
              const Tensor* out) {
  return transform_many("irfftn", Family::kToReal, true, x, s, axes, norm, out);
}
Tensor fft2(const Tensor& x, const FftDims& s, const FftDims& axes, FftNorm norm,
            const Tensor* out) {
  return transform_many("fft2", Family::kComplex, false, x, s, axes, norm, out);
}
Tensor ifft2(const Tensor& x, const FftDims& s, const FftDims& axes, FftNorm norm,
             const Tensor* out) {
  return transform_many("ifft2", Family::kComplex, true, x, s, axes, norm, out);
}
Tensor rfft2(const Tensor& x, const FftDims& s, const FftDims& axes, FftNorm norm,
             const Tensor* out) {
  return transform_many("rfft2", Family::kFromReal, false, x, s, axes, norm, out);
}
Tensor irfft2(const Tensor& x, const FftDims& s, const FftDims& axes, FftNorm norm,
              const Tensor* out) {
  return transform_many("irfft2", Family::kToReal, true, x, s, axes, norm, out);
}

Tensor dst1(const Tensor& x, int64_t axis, const Tensor* out) {
  return real_transform("dst1", x, axis, LineInput::kOdd, LineOutput::kSine, out);
}
Tensor dct1(const Tensor& x, int64_t axis, const Tensor* out) {
  return real_transform("dct1", x, axis, LineInput::kEven, LineOutput::kCosine, out);
}
// By a transform of real numbers of the same length (J. Makhoul: A fast cosine transform in one and
// two dimensions, IEEE Trans. ASSP 28, 1980).
Tensor dct2(const Tensor& x, int64_t axis, const Tensor* out) {
  return real_transform("dct2", x, axis, LineInput::kEvensThenOdds, LineOutput::kTurnedCosine, out);
}
Tensor dct3(const Tensor& x, int64_t axis, const Tensor* out) {
  return real_transform("dct3", x, axis, LineInput::kCosineSums, LineOutput::kInOrder, out);
}

Tensor fftfreq(int64_t n, double d, Device device) {
  return frequencies("fftfreq", n, d, n, (n + 1) / 2, device);
}
Tensor rfftfreq(int64_t n, double d, Device device) {
  return frequencies("rfftfreq", n, d, n / 2 + 1, n / 2 + 1, device);
}
Tensor fftshift(const Tensor& x, const FftDims& axes) { return shift("fftshift", x, axes, false); }
Tensor ifftshift(const Tensor& x, const FftDims& axes) { return shift("ifftshift", x, axes, true); }

}  // namespace cuop
