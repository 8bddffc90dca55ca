#include "cuop/dist/plan/fft_problem.h"

#include <algorithm>

#include "cuop/dist/plan/map_plan.h"
#include "cuop/dist/plan/pass_plan.h"

namespace cuop::dist {
namespace {

bool is_real(const FftProblem& problem) {
  return problem.kind == FftKind::kRfft || problem.kind == FftKind::kIrfft;
}

/// What of x is read: no more along an axis than its transform takes.
Box read_box(const FftProblem& problem) {
  Box box = whole_box(problem.x.shape);
  for (size_t i = 0; i < problem.axes.size(); ++i) {
    int64_t length = problem.lengths[i];
    const bool is_half = problem.kind == FftKind::kIrfft && i + 1 == problem.axes.size();
    if (is_half) length = length / 2 + 1;
    box.set_interval(problem.axes[i], clipped(box.interval(problem.axes[i]), length));
  }
  return box;
}

/// Along each axis all lines, of which padded or cut axes have the fewer of before and after.
double least_flops(const FftProblem& problem, const Shape& result) {
  double flops = 0;
  for (size_t i = 0; i < problem.axes.size(); ++i) {
    const int axis = problem.axes[i];
    const bool is_half = is_real(problem) && i + 1 == problem.axes.size();
    auto elements = static_cast<double>(problem.lengths[i] / (is_half ? 2 : 1));
    for (int dim = 0; dim < result.ndim(); ++dim) {
      if (dim != axis) {
        elements *= static_cast<double>(std::min(problem.x.shape[dim], result[dim]));
      }
    }
    // Of a padded line of real numbers half the length counts, as where passes are planned.
    const int64_t length =
        std::max(std::min(problem.x.shape[axis], problem.lengths[i]), result[axis]);
    flops += transform_flops(elements, length);
  }
  return flops;
}

/// Numbers that a rank needs of others for what is wanted there. A part of a transform, w
/// neighbours of the result that depend on f elements of the rest, has the full rank min(w, f), as
/// its matrix is one of powers of different numbers; of several axes the ranks multiply.
double foreign_numbers(const FftProblem& problem, const Box& wanted, const Box& own,
                       const Box& read) {
  double lines = 1, begun = 1;  // that are wanted, and those that the rank has something of
  double all = 1;               // the rank of a line that it has nothing of
  for (int dim = 0; dim < wanted.ndim(); ++dim) {
    const Interval of = wanted.interval(dim);
    if (has_axis(problem.axes, dim)) {
      all *= static_cast<double>(std::min(of.length(), read.interval(dim).length()));
      continue;
    }
    const Interval has = own.interval(dim);
    lines *= static_cast<double>(of.length());
    begun *= static_cast<double>(
        Interval{std::max(of.low, has.low), std::min(of.high, has.high)}.length());
  }
  if (own.empty()) begun = 0;
  double rest = 0;  // the rank of what it lacks of one that it has something of
  for (const int axis : problem.axes) {
    const int64_t width = wanted.interval(axis).length(), length = read.interval(axis).length();
    if (width == 0 || length == 0) return 0;
    const int64_t lacks = length - intersect(own, read).interval(axis).length();
    const auto along = static_cast<double>(std::min(width, length));
    rest = std::max(rest, all / along * static_cast<double>(std::min(width, lacks)));
  }
  return begun * rest + (lines - begun) * all;
}

double least_received(const FftProblem& problem, const Placement& result, const Box& read) {
  double most = 0;
  if (!problem.wanted || read.empty()) return most;
  const std::vector<Box> wanted = problem.wanted->owner_boxes(result.shape);
  const std::vector<Box> owners = problem.x.sharding.owner_boxes(problem.x.shape);
  for (size_t rank = 0; rank < wanted.size(); ++rank) {
    most = std::max(most, foreign_numbers(problem, wanted[rank], owners[rank], read));
  }
  const DType number = is_real(problem) ? real_dtype(result.dtype) : result.dtype;
  return most * static_cast<double>(std::min(itemsize(problem.x.dtype), itemsize(number)));
}

}  // namespace

Placement fft_result(const FftProblem& problem) {
  Placement result{"result", problem.x.shape, DType::kComplex64, problem.x.sharding};
  for (size_t i = 0; i < problem.axes.size(); ++i) {
    result.shape[problem.axes[i]] = problem.lengths[i];
  }
  if (problem.kind == FftKind::kRfft) {
    result.shape[problem.axes.back()] = problem.lengths.back() / 2 + 1;
  }
  const DType real = compute_dtype(to_inexact(real_dtype(problem.x.dtype)));
  result.dtype = problem.kind == FftKind::kIrfft ? real : complex_dtype(real);
  return result;
}

Floor fft_floor(const FftProblem& problem, const Machine& machine) {
  const Placement result = fft_result(problem);
  const Box read = read_box(problem);
  const auto read_bytes = static_cast<double>(read.size() * itemsize(problem.x.dtype));
  const double made_bytes = static_cast<double>(element_count(result.shape)) *
                            static_cast<double>(itemsize(result.dtype));
  const double flops = least_flops(problem, result.shape);
  Least least =
      least_of(machine, flops, read_bytes + made_bytes, result.dtype, best_fft_efficiency(machine));
  // Those who make a part of the arithmetic need as large a part of all lines, as numbers in time
  // or of the spectrum, whichever is shorter.
  const double moved = std::min(read_bytes, made_bytes);
  const double arithmetic =
      least_of(machine, flops, 0, result.dtype, best_fft_efficiency(machine)).seconds;
  least.in = {moved, largest_share(problem.x.sharding, problem.x.shape, read), arithmetic};
  least.out = {moved, wanted_share(problem.wanted, result.shape), arithmetic};
  least.received = least_received(problem, result, read);
  least.is_rooted = is_rooted({problem.x}, problem.wanted);
  return floor_of(least, machine, problem.x.sharding.mesh().size());
}

}  // namespace cuop::dist
