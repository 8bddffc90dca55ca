// A pass of line transforms on a GPU: cuFFT where the lines lie when it can read and write them
// there, else on lines side by side in scratch.
#include <algorithm>
#include <complex>
#include <span>
#include <vector>

#include "cuop/backend/cuda/cufft.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/fft/fft_kernels.h"
#include "cuop/ops/fft/line_transform_internal.h"
#include "cuop/ops/fft/root_table.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/strided.h"

namespace cuop::spectral {

using backend::TransformKind;

namespace {

/// Above this many calls of the library for one pass, lines are brought side by side first.
constexpr int64_t kMaxCalls = 8;

DType element_type(bool is_real, bool is_double) {
  if (is_real) return is_double ? DType::kFloat64 : DType::kFloat32;
  return is_double ? DType::kComplex128 : DType::kComplex64;
}

/// One side of the pass as a tensor whose last axis runs along the lines.
Tensor side(const LinePass& pass, const void* data, const Strides& others, int64_t stride,
            int64_t count, DType dtype) {
  Layout layout{pass.others, others, 0};
  layout.shape.push_back(count);
  layout.strides.push_back(stride);
  return from_memory(const_cast<void*>(data), layout, dtype, pass.device, nullptr);
}

struct Sides {
  Tensor given, result;
};
Sides sides(const LinePass& pass) {
  return {side(pass, pass.in, pass.in_strides, pass.in_stride, pass.in_count,
               element_type(takes_real(pass.kind, pass.input), pass.is_double)),
          side(pass, pass.out, pass.out_strides, pass.out_stride, pass.out_count,
               element_type(gives_real(pass.kind, pass.output), pass.is_double))};
}

/// The result's side with the joined axes too.
Tensor with_joined(const LinePass& pass, const Tensor& result) {
  Layout layout = result.layout();
  for (const LinePass::Joined& joined : pass.joined) {
    layout.shape.push_back(joined.n);
    layout.strides.push_back(joined.out_stride);
  }
  return result.with_layout(layout);
}

Tensor part(const Tensor& lines, int64_t begin, int64_t end) {
  return slice(lines, lines.ndim() - 1, begin, end);
}

/// Elements begin, begin - 1, ... of every line, `count` of them.
Tensor backwards(const Tensor& lines, int64_t begin, int64_t count) {
  Layout layout = lines.layout();
  const int axis = lines.ndim() - 1;
  layout.offset += begin * layout.strides[axis];
  layout.strides[axis] = -layout.strides[axis];
  layout.shape[axis] = count;
  return lines.with_layout(layout);
}

/// The real (0) or imaginary (1) parts of complex lines, in place.
Tensor parts_of(const Tensor& lines, int64_t which) {
  Layout layout = lines.layout();
  for (int i = 0; i < lines.ndim(); ++i) layout.strides[i] *= 2;
  layout.offset = 2 * layout.offset + which;
  return Tensor(lines.storage(), layout, real_dtype(lines.dtype()));
}

Tensor scratch(const LinePass& pass, int64_t count, DType dtype) {
  Shape shape = pass.others;
  shape.push_back(count);
  return empty(shape, dtype, pass.device);
}

/// The elements of every line with even numbers, and those with odd ones backwards.
Tensor evens(const Tensor& lines) { return slice(lines, lines.ndim() - 1, 0, std::nullopt, 2); }
Tensor odds_backwards(const Tensor& lines) {
  const int64_t n = lines.shape().back();
  return backwards(slice(lines, lines.ndim() - 1, 1, std::nullopt, 2), n / 2 - 1, n / 2);
}

/// Complex lines, in place, times exp(-pi i k / 2 n), or times its conjugate.
void turn(const LinePass& pass, const Tensor& lines, bool is_conjugate) {
  using Turns = std::span<const std::complex<double>>;
  std::vector<std::complex<double>> turns = quarter_turns(pass.n);
  if (is_conjugate)
    std::ranges::transform(turns, turns.begin(), [](auto z) { return std::conj(z); });
  const auto count = static_cast<int64_t>(turns.size());
  const Tensor all = cast(from_values<std::complex<double>>({count}, Turns(turns)), lines.dtype());
  multiply(lines, to_device(all, pass.device), &lines);
}

/// Whether the transform can read the lines as they were given.
bool is_complete(const LinePass& pass) {
  return pass.input == LineInput::kPlain && pass.in_count >= input_length(pass.kind, pass.n) &&
         pass.kind != TransformKind::kRealBackward;  // for which the library spoils its input
}

/// The lines as the transform reads them, side by side in scratch.
Tensor completed(const LinePass& pass, const Tensor& given) {
  const int64_t wanted = input_length(pass.kind, pass.n);
  const int64_t count = given.shape().back();
  const bool is_real = pass.kind == TransformKind::kRealForward;
  const Tensor lines = scratch(pass, wanted, element_type(is_real, pass.is_double));
  switch (pass.input) {
    case LineInput::kPlain:
      if (count < wanted) fill(lines, 0);
      copy_into(part(lines, 0, std::min(count, wanted)), part(given, 0, std::min(count, wanted)));
      break;
    case LineInput::kOdd: {  // 0, x, 0, -x reversed
      fill(lines, 0);
      copy_into(part(lines, 1, count + 1), given);
      const Tensor mirrored = part(lines, wanted - count, wanted);
      negative(backwards(given, count - 1, count), &mirrored);
      break;
    }
    case LineInput::kEven:  // x, x reversed without its ends
      copy_into(part(lines, 0, count), given);
      copy_into(part(lines, count, wanted), backwards(given, count - 2, wanted - count));
      break;
    case LineInput::kEvensThenOdds:
      copy_into(part(lines, 0, count - count / 2), evens(given));
      copy_into(part(lines, count - count / 2, count), odds_backwards(given));
      break;
    case LineInput::kCosineSums: {
      copy_into(parts_of(lines, 0), part(given, 0, wanted));
      fill(parts_of(part(lines, 0, 1), 1), 0);
      const Tensor imaginary = parts_of(part(lines, 1, wanted), 1);
      negative(backwards(given, count - 1, wanted - 1), &imaginary);
      turn(pass, lines, true);
      break;
    }
  }
  return lines;
}

/// The lines of the result from the transform's.
void deliver(const LinePass& pass, const Tensor& spectrum, const Tensor& result) {
  const int64_t half = spectrum.shape().back();
  switch (pass.output) {
    case LineOutput::kPlain:
      copy_into(result, part(spectrum, 0, pass.out_count));
      break;
    case LineOutput::kMirrored:
    case LineOutput::kMirroredConjugate: {
      const bool is_conjugate = pass.output == LineOutput::kMirroredConjugate;
      const Tensor first = part(result, 0, half), rest = part(result, half, pass.n);
      const Tensor mirrored = backwards(spectrum, pass.n - half, pass.n - half);
      if (is_conjugate) {
        conj(spectrum, &first);
        copy_into(rest, mirrored);
      } else {
        copy_into(first, spectrum);
        conj(mirrored, &rest);
      }
      break;
    }
    case LineOutput::kSine:
      negative(parts_of(part(spectrum, 1, pass.out_count + 1), 1), &result);
      break;
    case LineOutput::kCosine:
      copy_into(result, parts_of(part(spectrum, 0, pass.out_count), 0));
      break;
    case LineOutput::kTurnedCosine: {
      turn(pass, spectrum, false);
      const Tensor lower = part(result, 0, half), upper = part(result, half, pass.n);
      multiply(parts_of(spectrum, 0), 2.0, &lower);
      // The other half of the spectrum is the conjugate: n - k is turned by i more.
      const int64_t rest = pass.n - half;
      multiply(backwards(parts_of(spectrum, 1), rest, rest), -2.0, &upper);
      break;
    }
    case LineOutput::kInOrder:
      copy_into(evens(result), part(spectrum, 0, pass.n - pass.n / 2));
      copy_into(odds_backwards(result), part(spectrum, pass.n - pass.n / 2, pass.n));
      break;
  }
}

Strides across_lines(const Tensor& lines) {
  Strides strides = lines.strides();
  strides.erase(lines.ndim() - 1);
  return strides;
}

LoopNest<2> nest_of(const LinePass& pass, const Tensor& in, const Tensor& out) {
  const Strides in_strides = across_lines(in), out_strides = across_lines(out);
  return make_loop_nest<2>(pass.others, {&in_strides, &out_strides});
}

void run_library(const LinePass& pass, const Tensor& in, const Tensor& out) {
  const int axis = in.ndim() - 1;
  const auto nest = nest_of(pass, in, out);
  backend::cuda::FftGridSpec spec;
  spec.lines = {.kind = pass.kind,
                .is_double = pass.is_double,
                .n = pass.n,
                .batch = nest.inner().size,
                .in_distance = std::max<int64_t>(1, nest.inner().strides[0]),  // 0 for one line
                .out_distance = std::max<int64_t>(1, nest.inner().strides[1]),
                .in_stride = in.strides()[axis],
                .out_stride = out.strides()[axis]};
  LinePass::Joined faster{pass.n, spec.lines.in_stride, spec.lines.out_stride};
  spec.slower_count = static_cast<int>(pass.joined.size());
  for (size_t i = 0; i < pass.joined.size(); ++i) {
    const LinePass::Joined& joined = pass.joined[i];
    spec.slower[pass.joined.size() - 1 - i] = {joined.n, joined.in_stride / faster.in_stride,
                                               joined.out_stride / faster.out_stride};
    faster = joined;
  }
  auto* const from = static_cast<std::byte*>(in.data());
  auto* const to = static_cast<std::byte*>(out.data());
  const Stream stream = current_stream(pass.device);
  for (int64_t outer = 0; outer < nest.outer_size(); ++outer) {
    const auto offsets = nest.row_offsets(outer);
    backend::cuda::fft("fft", spec, from + offsets[0] * itemsize(in.dtype()),
                       to + offsets[1] * itemsize(out.dtype()), stream);
  }
}

/// Where the library takes complex numbers.
int64_t alignment_of(const LinePass& pass) { return pass.is_double ? 16 : 8; }

/// Whether few calls of the library reach all lines, in the direction of memory and each from where
/// a complex number may lie.
bool is_reachable(const LinePass& pass, const Tensor& in, const Tensor& out) {
  if (in.strides().back() <= 0 || out.strides().back() <= 0) return false;
  const auto nest = nest_of(pass, in, out);
  const auto& inner = nest.inner();
  const bool is_forward = inner.size == 1 || (inner.strides[0] > 0 && inner.strides[1] > 0);
  if (!is_forward || nest.outer_size() > kMaxCalls) return false;
  const int64_t alignment = alignment_of(pass);
  const auto is_aligned = [&](const Tensor& side, size_t which) {
    if (reinterpret_cast<intptr_t>(side.data()) % alignment != 0) return false;
    for (int i = 0; i + 1 < nest.count; ++i) {
      const int64_t step = nest.axes[static_cast<size_t>(i)].strides[which];
      if (step * itemsize(side.dtype()) % alignment != 0) return false;
    }
    return true;
  };
  return is_aligned(in, 0) && is_aligned(out, 1);
}

}  // namespace

void run_lines_cuda(const LinePass& pass) {
  if (element_count(pass.others) == 0) return;
  const bool is_real_spectrum = pass.kind == TransformKind::kRealBackward;
  const auto [given, result] = sides(pass);
  const int64_t length = output_length(pass.kind, pass.n);
  const bool is_ready = is_complete(pass);
  Tensor lines =
      is_ready ? part(given, 0, input_length(pass.kind, pass.n)) : completed(pass, given);
  const bool is_whole = pass.output == LineOutput::kPlain && pass.out_count == length;
  if (is_whole && is_reachable(pass, lines, result)) {
    run_library(pass, lines, result);
  } else {
    if (is_ready) lines = completed(pass, given);
    const Tensor spectrum = scratch(pass, length, element_type(is_real_spectrum, pass.is_double));
    run_library(pass, lines, spectrum);
    deliver(pass, spectrum, result);
  }
  if (pass.scale != 1.0) {
    const Tensor all = with_joined(pass, result);
    multiply(all, pass.scale, &all);
  }
}

bool is_one_call_cuda(const LinePass& pass) {
  if (pass.joined.size() > backend::cuda::FftGridSpec{}.slower.size()) return false;
  const auto [given, result] = sides(pass);
  const int64_t alignment = alignment_of(pass);
  LinePass::Joined faster{pass.n, pass.in_stride, pass.out_stride};
  int64_t in_count = pass.in_count, out_count = pass.out_count;  // of the faster axis
  for (const LinePass::Joined& joined : pass.joined) {
    if (faster.in_stride <= 0 || faster.out_stride <= 0) return false;
    const bool is_grid = joined.in_stride % faster.in_stride == 0 &&
                         joined.out_stride % faster.out_stride == 0 &&
                         joined.in_stride / faster.in_stride >= in_count &&
                         joined.out_stride / faster.out_stride >= out_count;
    if (!is_grid || joined.in_stride * itemsize(given.dtype()) % alignment != 0) return false;
    in_count = out_count = joined.n;
    faster = joined;
  }
  return is_complete(pass) && pass.output == LineOutput::kPlain &&
         pass.in_count == input_length(pass.kind, pass.n) &&
         pass.out_count == output_length(pass.kind, pass.n) && is_reachable(pass, given, result);
}

}  // namespace cuop::spectral
