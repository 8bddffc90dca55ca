#include "cuop/dist/algo/row_solvers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "cuop/core/interrupt.h"
#include "cuop/jit/fusion.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"

namespace cuop::dist {
namespace {

double norm_of(Communicator& comm, const RowEquation& equation, const Tensor& squares) {
  return std::sqrt(value_of(total_of_rows(comm, squares, equation.blocks())));
}

double residual_norm(Communicator& comm, const RowEquation& equation) {
  return norm_of(comm, equation, equation.residual({}));
}

/// The norm below which the residual is small enough.
double target_of(Communicator& comm, const RowEquation& equation, const Patience& patience,
                 double first_residual) {
  const double b = norm_of(comm, equation, dots_of_rows(equation.b(), equation.b()));
  return patience.tolerance * (b > 0.0 ? b : first_residual);
}

/// a / b of numbers where they lie, 0 unless `is_going` is true.
Tensor ratio(const Tensor& a, const Tensor& b, const Tensor& is_going, DType dtype) {
  return cast(where(is_going, divide(a, b), 0.0), dtype);
}

double epsilon(DType dtype) {
  return dtype == DType::kFloat32 ? std::numeric_limits<float>::epsilon()
                                  : std::numeric_limits<double>::epsilon();
}

/// A residual without its mean where the edges leave that of u open: no u changes it, so that a
/// search would run along the constants for ever.
void drop_open_mean(Communicator& comm, const RowEquation& equation, const Tensor& residual) {
  const FivePoint& op = equation.op();
  if (op.ends == AxisEnds::kZero) return;
  const double sum = sum_of_grid(comm, residual, equation.blocks());
  subtract(residual, sum / static_cast<double>(op.height * op.width), &residual);
}

}  // namespace

double best_factor(const FivePoint& op) {
  using std::numbers::pi;
  const FivePoint bound = without_loops(op);
  const auto n = [](int64_t cells) { return static_cast<double>(cells); };
  double radius = 0.0;
  if (op.ends == AxisEnds::kZero) {
    radius = (bound.down * std::cos(pi / n(op.height + 1)) +
              bound.across * std::cos(pi / n(op.width + 1))) /
             (bound.down + bound.across);
  } else {
    // The slowest mode that is not constant lies along one axis.
    const double turn = op.is_periodic() ? 2.0 * pi : pi;
    const double down = op.height > 1 ? bound.down : 0.0,
                 across = op.width > 1 ? bound.across : 0.0;
    const auto along = [&](double weight, int64_t cells) {
      return 1.0 - weight * (1.0 - std::cos(turn / n(cells))) / (down + across);
    };
    if (down > 0.0) radius = std::max(radius, along(down, op.height));
    if (across > 0.0) radius = std::max(radius, along(across, op.width));
  }
  return 2.0 / (1.0 + std::sqrt(1.0 - radius * radius));
}

void solve_by_multigrid(Communicator& comm, Multigrid& multigrid, const Patience& patience,
                        SolveInfo& info) {
  constexpr double kRounding = 0.5;  // a cycle that does not even halve the residual
  RowEquation& equation = multigrid.finest();
  double norm = residual_norm(comm, equation);
  const double target = target_of(comm, equation, patience, norm);
  while (info.sweeps < patience.iterations && norm > target) {
    check_interrupt();
    multigrid.cycle();
    equation.fetch_halo();
    const double before = std::exchange(norm, residual_norm(comm, equation));
    ++info.sweeps;
    if (!(norm < kRounding * before)) return;
  }
}

void solve_by_sor(Communicator& comm, RowEquation& equation, const Patience& patience,
                  SolveInfo& info) {
  constexpr int64_t kBetweenLooks = 16;
  const double factor = best_factor(equation.op());
  double norm = residual_norm(comm, equation);
  const double target = target_of(comm, equation, patience, norm);
  while (info.sweeps < patience.iterations && norm > target) {
    const int64_t until = std::min(info.sweeps + kBetweenLooks, patience.iterations);
    while (info.sweeps < until) {
      check_interrupt();
      const int64_t now = std::min<int64_t>(kSorSweeps, until - info.sweeps);
      equation.relax(passes_of(equation.op(), static_cast<int>(now)), factor, 0);
      equation.fetch_halo();
      info.sweeps += now;
    }
    norm = residual_norm(comm, equation);
  }
}

void solve_by_cg(Communicator& comm, RowEquation& equation, const Patience& patience,
                 SolveInfo& info) {
  constexpr int64_t kBetweenLooks = 8;
  constexpr double kRounding = 0.5;  // a restart that does not even halve the true residual
  // Of epsilon times the residual that a search begins with: below, its rounding is what remains.
  constexpr double kSearched = 16.0;
  const Tensor u = equation.u();  // of the search direction, once it is begun
  Tensor x = clone(u), residual = clone(u);
  const Tensor image = clone(u);
  const DType dtype = u.dtype();
  const auto dot = [&](const Tensor& a, const Tensor& b) {
    return total_of_rows(comm, dots_of_rows(a, b), equation.blocks());
  };
  double target = -1.0, last = INFINITY;
  while (true) {
    equation.residual(residual);
    drop_open_mean(comm, equation, residual);
    Tensor square = dot(residual, residual);
    double norm = std::sqrt(value_of(square));
    if (target < 0.0) {
      // No residual is known better than to rounding, from which a search goes astray.
      const Patience least{patience.iterations, std::max(patience.tolerance, epsilon(dtype))};
      target = target_of(comm, equation, least, norm);
    }
    if (!(norm > target) || info.sweeps >= patience.iterations || !(norm < kRounding * last))
      return;
    last = norm;
    const double enough = std::max(target, kSearched * epsilon(dtype) * norm);
    copy_into(u, residual);
    while (norm > enough && info.sweeps < patience.iterations) {
      check_interrupt();
      equation.fetch_halo();
      equation.apply(image);
      // Behind the last look nothing more is done from where the residual is small enough.
      const Tensor is_going = greater(square, enough * enough);
      const Tensor step = ratio(square, dot(u, image), is_going, dtype);
      {
        Fused scope;
        x = add(x, multiply(step, u));
        residual = subtract(residual, multiply(step, image));
        scope.close();
      }
      const Tensor next = dot(residual, residual);
      add(residual, multiply(ratio(next, square, is_going, dtype), u), &u);
      square = next;
      if (++info.sweeps % kBetweenLooks == 0) norm = std::sqrt(value_of(square));
    }
    // Rounding parts the residual that is carried along from the true one.
    copy_into(u, x);
    equation.fetch_halo();
  }
}

void solve_by_jacobi(Communicator& comm, RowEquation& equation, const Patience& patience,
                     SolveInfo& info) {
  const Tensor u = equation.u();
  const Tensor residual = clone(u);
  while (info.sweeps < patience.iterations) {
    check_interrupt();
    const Tensor squares = equation.residual(residual);
    add(u, multiply(residual, 0.25), &u);
    equation.fetch_halo();
    ++info.sweeps;
    info.update_norm = 0.25 * norm_of(comm, equation, squares);
    if (info.update_norm < patience.tolerance) return;
  }
}

}  // namespace cuop::dist
