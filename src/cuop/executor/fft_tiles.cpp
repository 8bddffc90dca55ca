#include <algorithm>
#include <cmath>
#include <memory>

#include "cuop/core/text.h"
#include "cuop/dist/algo/operations.h"
#include "cuop/dist/plan/plan.h"
#include "cuop/executor/operations.h"
#include "cuop/ops/create/empty.h"

namespace cuop::executor {
namespace {

/// Bytes beside x and the result: of input that is widened, and of what a library works in.
std::function<int64_t(const Box&, Interval)> scratch_of(
    const std::shared_ptr<const dist::FftProblem>& problem, dist::FftKind kind, DType given,
    DType result) {
  // 16-bit floats and integers become complex by way of float32 or float64.
  const bool is_cast = given != DType::kFloat32 && given != DType::kFloat64;
  const bool is_to_real = kind == dist::FftKind::kIrfft;
  const bool is_widened = kind != dist::FftKind::kRfft && !is_complex(given);
  // Of halves of a complex number: fft takes real numbers as they are, once cast.
  const int64_t copies = !is_widened ? 0 : is_to_real ? (is_cast ? 3 : 2) : (is_cast ? 3 : 1);
  const int64_t item = itemsize(complex_dtype(real_dtype(result)));
  return [=](const Box& output, Interval) {
    int64_t lines = 1, points = 1;
    for (int dim = 0; dim < output.ndim(); ++dim) {
      if (!has_axis(problem->axes, dim)) lines *= output.interval(dim).length();
    }
    for (const int64_t length : problem->lengths) points *= length;
    if (!is_to_real) return lines * points * (item + copies * item / 2);
    // The library spoils the spectrum, so that it gets one of its own, and may give the numbers in
    // another order.
    const int axis = problem->axes.back();
    const int64_t half = points / problem->lengths.back() * (problem->lengths.back() / 2 + 1);
    const int64_t all = points / problem->lengths.back() * problem->x.shape[axis];
    return lines * (half * item + all * copies * item / 2 + points * item / 2);
  };
}

Tiling describe(const std::string& who, const dist::FftCall& call,
                const std::vector<Header>& inputs) {
  const auto problem = std::make_shared<const dist::FftProblem>(
      dist::fft_problem(who, call, placements_of({"x"}, inputs).at(0)));
  const dist::Placement result = dist::fft_result(*problem);
  Tiling tiling;
  tiling.op = who;
  tiling.names = {"x"};
  tiling.inputs = inputs;
  tiling.output = {result.shape, result.dtype};
  double points = 1;
  for (int dim = 0; dim < result.shape.ndim(); ++dim) {
    if (!has_axis(problem->axes, dim)) tiling.cut_dims.push_back(dim);
  }
  for (const int64_t length : problem->lengths) points *= static_cast<double>(length);
  tiling.flops =
      5.0 * std::log2(std::max(2.0, points)) * static_cast<double>(element_count(result.shape));
  const int64_t longest = *std::max_element(problem->lengths.begin(), problem->lengths.end());
  tiling.efficiency = dist::fft_efficiency({}, longest * itemsize(result.dtype));
  tiling.computed = result.dtype;
  const Shape shape = inputs[0].shape;
  tiling.needed = [problem, shape](size_t, const Box& output, Interval) {
    Box box = output;
    for (const int axis : problem->axes) box.set_interval(axis, {0, shape[axis]});
    return box;
  };
  tiling.scratch = scratch_of(problem, call.kind, inputs[0].dtype, result.dtype);
  tiling.make = [problem, norm = call.norm, dtype = result.dtype](const std::vector<Part>& parts,
                                                                  const Box& output, Interval) {
    const Tensor made = empty(output.shape(), dtype, parts[0].device);
    dist::transform_axes(*problem, norm, parts[0].local, problem->axes, made);
    return made;
  };
  return tiling;
}

TileOperation operation(const std::string& who, const dist::FftCall& call,
                        const std::function<dist::Operation()>& over_ranks) {
  const auto words = [](const FftDims& dims) { return dims ? cat(*dims) : std::string("default"); };
  return {cat(who, " lengths ", words(call.s), ", axes ", words(call.axes), ", norm ",
              static_cast<int>(call.norm)),
          {"x"},
          [=](const std::vector<Header>& inputs) { return describe(who, call, inputs); },
          over_ranks};
}

const char* name_of(dist::FftKind kind) {
  static constexpr const char* kNames[] = {"fft", "ifft", "rfft", "irfft"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace

TileOperation fft_tiles(const dist::FftBatch& batch) {
  FftDims n;
  if (batch.n) n = Dims{*batch.n};
  return operation(name_of(batch.kind), {batch.kind, n, Dims{batch.dim}, batch.norm},
                   [batch] { return dist::fft_operation(batch); });
}

TileOperation fft2d_tiles(const dist::Fft2dBatch& batch) {
  const dist::FftKind kind = batch.options.is_inverse ? dist::FftKind::kIfft : dist::FftKind::kFft;
  return operation(cat(name_of(kind), "2d"), {kind, batch.s, batch.dims, batch.options.norm},
                   [batch] { return dist::fft2d_operation(batch); });
}

}  // namespace cuop::executor
