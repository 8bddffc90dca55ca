#include "cuop/dist/plan/pass_plan.h"

#include <algorithm>
#include <cmath>

#include "cuop/core/text.h"

namespace cuop::dist {
namespace {

/// Of an element: a division, two products and three sums there, one of each back.
constexpr double kRecurrenceFlops = 8;

/// Elements of one side that the arithmetic goes by: a transform between real and complex numbers
/// takes two real ones as a complex one.
int64_t transformed(int64_t bytes, DType dtype, DType other) {
  const bool is_real_side = !is_complex(dtype) && is_complex(other);
  return bytes / itemsize(dtype) / (is_real_side ? 2 : 1);
}

/// The longer of a line before and after.
int64_t line_bytes(const Placement& here, const Placement& made, int axis) {
  return std::max(here.shape[axis] * itemsize(here.dtype), made.shape[axis] * itemsize(made.dtype));
}

/// Times the flops of a length with small factors: with a large one a line is a convolution, for
/// which libraries transform more than twice its elements there and back. Measured with FFTW and
/// our own convolution: 3 from 10^6 elements on.
double work_of_length(int64_t length) {
  if (!has_large_factor(length)) return 1;
  const auto n = static_cast<double>(length);
  return 3 * std::log2(2 * n) / std::log2(n);
}

/// Transforms along the pass's axes from `here` to `made`, of so many bytes on the busiest rank.
void add_transforms(Plan& plan, const Machine& machine, const Pass& pass, const Placement& here,
                    const Placement& made, int64_t read, int64_t written) {
  const double count = static_cast<double>(std::max(transformed(read, here.dtype, made.dtype),
                                                    transformed(written, made.dtype, here.dtype)));
  double flops = 0, at_full_speed = 0;
  for (const int axis : pass.axes) {
    const int64_t length = std::max(here.shape[axis], made.shape[axis]);
    const double along = transform_flops(count, length);
    flops += along;
    at_full_speed +=
        work_of_length(length) * along / fft_efficiency(machine, line_bytes(here, made, axis));
  }
  add_compute(plan, machine, cat("transform along ", join(pass.axes)), flops, read + written,
              pass.dtype, flops > 0 ? flops / at_full_speed : 1.0);
  plan.steps.back().axes = pass.axes;
}

/// Two doubles of each element of the lines that threads have in hand: 16 each, of up to 64
/// threads.
int64_t recurrence_scratch(const Pass& pass, int64_t elements) {
  constexpr int64_t kLines = int64_t{16} * 64;
  return 2 * static_cast<int64_t>(sizeof(double)) *
         std::min(elements, kLines * pass.shape[pass.axes.front()]);
}

void add_recurrence(Plan& plan, const Machine& machine, const Pass& pass, int64_t read,
                    int64_t written) {
  const double bytes = static_cast<double>(read + written) / machine.recurrence_speed;
  const double flops = kRecurrenceFlops * static_cast<double>(written / itemsize(pass.dtype));
  add_compute(plan, machine, cat("recurrence along ", join(pass.axes)), flops,
              static_cast<int64_t>(bytes), pass.dtype);
  for (int axis = 0; axis < pass.shape.ndim(); ++axis) {
    if (!has_axis(pass.axes, axis)) plan.steps.back().axes.push_back(axis);
  }
}

}  // namespace

bool has_large_factor(int64_t length) {
  constexpr int64_t kLargestFactor = 127;
  if (length <= kLargestFactor) return false;  // 0 among them, which has all factors
  int64_t rest = length;
  for (int64_t factor = 2; factor <= kLargestFactor; ++factor) {
    while (rest % factor == 0) rest /= factor;
  }
  return rest > 1;
}

double transform_flops(double elements, int64_t length) {
  return 5.0 * elements * std::log2(static_cast<double>(std::max(length, int64_t{2})));
}

Placement add_passes(Plan& plan, const Machine& machine, const Placement& from,
                     const std::vector<Pass>& passes) {
  Placement here = from;
  for (const Pass& pass : passes) {
    add_redistribution(plan, machine, here.name, here.shape, here.dtype, here.sharding, pass.at);
    const Placement made{"half-transformed", pass.shape, pass.dtype, pass.at};
    const int64_t read = largest_block(here.shape, here.dtype, pass.at);
    const int64_t written = largest_block(made.shape, made.dtype, pass.at);
    if (pass.is_recurrence) {
      add_recurrence(plan, machine, pass, read, written);
    } else {
      add_transforms(plan, machine, pass, here, made, read, written);
    }
    plan.steps.back().made = made;
    // Libraries transform in memory of their own.
    const int64_t scratch =
        pass.is_recurrence ? recurrence_scratch(pass, written / itemsize(pass.dtype)) : written;
    plan.memory_per_rank = std::max(plan.memory_per_rank, read + written + scratch);
    here = made;
  }
  return here;
}

void add_reordering(Plan& plan, const Machine& machine, const Placement& matrix) {
  const auto block =
      static_cast<double>(largest_block(matrix.shape, matrix.dtype, matrix.sharding));
  add_compute(plan, machine, "rows and columns exchanged in memory", 0,
              static_cast<int64_t>(2.0 * block / machine.transposed_speed), matrix.dtype);
}

std::vector<Plan> pass_plans(const PassProblem& problem, const Machine& machine) {
  const Placement& x = problem.x;
  std::vector<Plan> plans;
  for (const PassChoice& choice : problem.choices) {
    Plan plan{problem.op, choice.strategy, choice.detail, x.sharding.mesh().size()};
    plan.inputs.push_back({x.name, x.shape, x.dtype, choice.passes.at(0).at});
    const Placement made = add_passes(plan, machine, x, choice.passes);
    add_output(plan, machine, {"result", made.shape, problem.result, made.sharding},
               problem.wanted);
    plan.memory_per_rank += largest_block(x.shape, x.dtype, x.sharding);
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace cuop::dist
