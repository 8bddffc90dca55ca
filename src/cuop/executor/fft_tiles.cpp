#include <algorithm>
#include <cmath>
#include <memory>

#include "cuop/core/text.h"
#include "cuop/dist/algo/operations.h"
#include "cuop/dist/plan/pass_plan.h"
#include "cuop/dist/plan/plan.h"
#include "cuop/executor/operations.h"
#include "cuop/ops/create/empty.h"

namespace cuop::executor {
namespace {

/// What a transform along one axis takes for each line beside its input and its result, in the way
/// of a GPU (ops/fft/fft_cuda.cpp), which takes most.
struct LineScratch {
  dist::FftKind kind;
  bool is_real_input;
  int64_t real_bytes;  ///< of a real number

  /// Whether the library may not reach lines of this shape where they lie: other axes are on both
  /// sides, and one call each would be too many, or real numbers begin where no complex one does.
  bool is_unreached(const Shape& shape, int axis) const {
    constexpr int64_t kMostCalls = 8;
    int64_t before = 1;
    for (int dim = 0; dim < axis; ++dim) before *= shape[dim];
    const bool has_real = is_real_input || kind == dist::FftKind::kIrfft;
    return axis + 1 < shape.ndim() && before > (has_real ? 1 : kMostCalls);
  }

  /// Of the library's work area: as large as the lines, but where it transforms longer ones instead
  /// at most what its documentation allows for, in complex numbers.
  int64_t work_area(int64_t n, int64_t input, const WorkFigures& figures) const {
    constexpr int64_t kMost = 8;
    const bool is_longer = figures.is_gpu() && dist::has_large_factor(n);
    return is_longer ? kMost * n * 2 * real_bytes : input;
  }

  int64_t bytes(int64_t given, int64_t n, bool is_unreached, const WorkFigures& figures) const {
    const bool is_to_real = kind == dist::FftKind::kIrfft;
    const bool is_mirrored = is_real_input && kind != dist::FftKind::kRfft && !is_to_real;
    const int64_t half = (n / 2 + 1) * 2 * real_bytes;
    const int64_t input = is_to_real ? half : n * (is_real_input ? 1 : 2) * real_bytes;
    // Lines that are short, that the library spoils or that it does not reach are brought to
    // scratch; spectra are taken from there.
    const bool is_brought = is_to_real || is_mirrored || is_unreached || given < n;
    const int64_t made = is_to_real ? n * real_bytes : is_real_input ? half : n * 2 * real_bytes;
    return work_area(n, input, figures) + (is_brought ? input : 0) +
           (is_mirrored || is_unreached ? made : 0);
  }
};

/// Bytes beside x and the result.
std::function<int64_t(const Box&, Interval, const WorkFigures&)> scratch_of(
    const std::shared_ptr<const dist::FftProblem>& problem, DType given, DType result) {
  const dist::FftKind kind = problem->kind;
  const bool is_real_input = !is_complex(given) && kind != dist::FftKind::kIrfft;
  const int64_t real = itemsize(real_dtype(result));
  const DType computed = is_real_input ? real_dtype(result) : complex_dtype(real_dtype(result));
  const int64_t cast = given == computed ? 0 : itemsize(computed);
  // 16-bit floats and integers become complex by way of real numbers.
  const bool is_by_way = !is_complex(given) && is_complex(computed) && given != real_dtype(result);
  return [=](const Box& output, Interval, const WorkFigures& figures) {
    const Shape made = output.shape();
    Shape shape = made;
    for (const int axis : problem->axes) shape[axis] = problem->x.shape[axis];
    const int64_t elements = element_count(shape);
    int64_t most = is_by_way ? elements * real : 0, held = 0;
    bool is_real = is_real_input;
    for (size_t i = problem->axes.size(); i-- > 0;) {
      const int axis = problem->axes[i];
      const LineScratch line{kind, is_real, real};
      const int64_t lines = element_count(shape) / std::max<int64_t>(1, shape[axis]);
      const bool is_unreached = line.is_unreached(shape, axis);
      const int64_t work =
          lines * line.bytes(shape[axis], problem->lengths[i], is_unreached, figures);
      shape[axis] = made[axis];
      const int64_t next = i == 0 || shape == made ? 0 : element_count(shape) * 2 * real;
      most = std::max(most, held + next + work);
      held = next;
      is_real = false;
    }
    return elements * cast + most;
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
  tiling.scratch = scratch_of(problem, inputs[0].dtype, result.dtype);
  tiling.make = [problem, norm = call.norm, dtype = result.dtype](const std::vector<Part>& parts,
                                                                  const Box& output, Interval) {
    const Tensor made = empty(output.shape(), dtype, parts[0].device);
    dist::transform_axes(*problem, norm, parts[0].local, problem->axes, made);
    return made;
  };
  return tiling;
}

/// `check` refuses what this form of the call does not take.
TileOperation operation(const std::string& who, const dist::FftCall& call,
                        const std::function<dist::Operation()>& over_ranks,
                        const std::function<void()>& check = nullptr) {
  const auto words = [](const FftDims& dims) { return dims ? cat(*dims) : std::string("default"); };
  return {cat(who, " lengths ", words(call.s), ", axes ", words(call.axes), ", norm ",
              static_cast<int>(call.norm)),
          {"x"},
          [=](const std::vector<Header>& inputs) {
            if (check) check();
            return describe(who, call, inputs);
          },
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
  return operation(
      name_of(batch.kind), {batch.kind, n, Dims{batch.dim}, batch.norm},
      [batch] { return dist::fft_operation(batch); }, [batch] { dist::check_batch(batch); });
}

TileOperation fft2d_tiles(const dist::Fft2dBatch& batch) {
  const dist::FftKind kind = batch.options.is_inverse ? dist::FftKind::kIfft : dist::FftKind::kFft;
  return operation(cat(name_of(kind), "2d"), {kind, batch.s, batch.dims, batch.options.norm},
                   [batch] { return dist::fft2d_operation(batch); });
}

}  // namespace cuop::executor
