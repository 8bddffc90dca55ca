#include <algorithm>
#include <cmath>
#include <numeric>

#include "cuop/backend/slot.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"
#include "cuop/ops/stencil/pitched.h"
#include "cuop/ops/stencil/stencil.h"
#include "cuop/ops/stencil/stencil_kernels.h"

namespace cuop {

namespace {

constexpr backend::Slot kJacobi{"jacobi2d", &kernels::jacobi_cpu, &kernels::jacobi_cuda};
constexpr backend::Slot kJacobiRows{"jacobi2d_rows", &kernels::jacobi_rows_cpu,
                                    &kernels::jacobi_rows_cuda};
constexpr backend::Slot kResidualRows{"poisson_residual_rows", &kernels::residual_rows_cpu,
                                      &kernels::residual_rows_cuda};

/// `halo` is how many more rows `u` has than the right-hand side.
void check_problem(const char* who, const Tensor& u, const Tensor& rhs, int64_t halo, double dx) {
  visit_dtype(FloatTypes{}, u.dtype(), who, [](auto) {});
  common_device(who, {&u, &rhs});
  if (u.ndim() != 2 || rhs.ndim() != 2 || u.shape(0) != rhs.shape(0) + halo ||
      u.shape(1) != rhs.shape(1)) {
    throw ShapeError(cat(who, ": u of shape ", u.shape(), " and rhs of shape ", rhs.shape(),
                         " do not fit; u needs ", halo, " more rows and as many columns"));
  }
  if (u.dtype() != rhs.dtype()) {
    throw DTypeError(
        cat(who, ": u is ", u.dtype(), " and rhs is ", rhs.dtype(), "; they must be equal"));
  }
  if (!(dx > 0.0) || !std::isfinite(dx)) {
    throw ExecutionError(cat(who, ": dx is ", dx, ", it must be positive and finite"));
  }
}

double sum(const double* values, int64_t count) {
  return std::accumulate(values, values + count, 0.0);
}

double sum_of_norms(const Tensor& norms) {
  const Tensor on_host = to_device(norms, kCpu);
  return sum(on_host.data<double>(), on_host.size());
}

/// Room for norms of a tensor's rows; a sweep without cells writes none, they are zero.
Tensor room_for_norms(const Tensor& rows, const Shape& shape) {
  return rows.size() == 0 ? zeros(shape, DType::kFloat64, rows.device())
                          : empty(shape, DType::kFloat64, rows.device());
}

/// One row more on each side: zeros, or the row of the opposite side.
Tensor with_halo(const Tensor& u, Boundary boundary) {
  const int64_t height = u.shape(0);
  const Tensor padded = empty({height + 2, u.shape(1)}, u.dtype(), u.device());
  const auto rows = [](const Tensor& t, int64_t first, int64_t count) {
    return slice(t, 0, first, first + count);
  };
  copy_into(rows(padded, 1, height), u);
  if (boundary == Boundary::kPeriodic && height > 0) {
    copy_into(rows(padded, 0, 1), rows(u, height - 1, 1));
    copy_into(rows(padded, height + 1, 1), rows(u, 0, 1));
  } else {
    const Tensor none = zeros({1, u.shape(1)}, u.dtype(), u.device());
    copy_into(rows(padded, 0, 1), none);
    copy_into(rows(padded, height + 1, 1), none);
  }
  return padded;
}

}  // namespace

double JacobiSweep::squared_norm() const { return sum_of_norms(row_norms); }

JacobiResult jacobi2d(const Tensor& u, const Tensor& rhs, const JacobiOptions& options,
                      const Tensor* out) {
  const trace::Span span("jacobi2d", "op");
  check_problem("jacobi2d", u, rhs, 0, options.dx);
  if (options.iterations < 0 || !(options.tolerance >= 0.0)) {
    throw ExecutionError(cat("jacobi2d: iterations (", options.iterations, ") and tolerance (",
                             options.tolerance, ") must not be negative"));
  }
  const Tensor result = prepare_output("jacobi2d", out, u.shape(), u.dtype(), u.device());
  check_same_or_no_overlap("jacobi2d", result, u, "u");
  check_no_overlap("jacobi2d", result, rhs, "rhs");
  const int64_t height = u.shape(0);
  const Tensor f = contiguous(rhs);
  JacobiResult solution;
  Tensor current = contiguous(u);
  constexpr int64_t kSweepsOnGpu = 32;  // between two looks at their norms
  const int64_t most = u.device().is_cpu()
                           ? kernels::sweeps_per_pass(u.shape(1), 1, itemsize(u.dtype()))
                           : kSweepsOnGpu;
  std::vector<double> norms(static_cast<size_t>(most * height));
  Tensor spare;
  bool is_done = u.size() == 0, is_sampled = !u.device().is_cpu() && has_many_cells(u.size());
  while (!is_done && solution.sweeps < options.iterations) {
    check_interrupt();
    const int64_t now = std::min(most, options.iterations - solution.sweeps);
    const Tensor next = spare.is_defined() ? spare : empty(u.shape(), u.dtype(), u.device());
    const int64_t measured = is_sampled ? 1 : now;
    kJacobi(u.device(), current, f, options.dx, options.boundary, now, next, norms.data(),
            measured);
    int64_t taken = now - measured;
    while (taken < now && !is_done) {
      const int64_t number = taken - (now - measured);
      solution.update_norm = std::sqrt(sum(norms.data() + number * height, height));
      is_done = solution.update_norm < options.tolerance;
      ++taken;
    }
    if (is_sampled && !is_far_above(solution.update_norm, options.tolerance)) {
      is_sampled = is_done = false;
      spare = next;
      continue;
    }
    if (taken < now) {  // converged within the pass: repeat it up to there, for that sweep's values
      kJacobi(u.device(), current, f, options.dx, options.boundary, taken, next, norms.data(),
              taken);
    }
    spare = solution.sweeps == 0 ? Tensor() : current;  // the caller's u is not ours to write
    current = next;
    solution.sweeps += taken;
  }
  copy_into(result, current);
  solution.u = result;
  solution.residual_norm = std::sqrt(sum_of_norms(poisson_residual_rows(
      with_halo(result, options.boundary), rhs, options.dx, options.boundary)));
  return solution;
}

int64_t jacobi_sweeps_at_once(Device device) {
  return device.is_cpu() ? 1 : kernels::jacobi_sweeps_per_pass_cuda();
}

JacobiSweep jacobi2d_rows(const Tensor& padded, const Tensor& rhs, double dx, Boundary boundary,
                          const Tensor* out, const RowSweeps& rows) {
  const trace::Span span("jacobi2d_rows", "op");
  check_problem("jacobi2d_rows", padded, rhs, 2, dx);
  const int64_t most = jacobi_sweeps_at_once(padded.device());
  const int64_t height = padded.shape(0) - 2 * rows.sweeps;
  if (rows.sweeps < 1 || rows.sweeps > most) {
    throw ExecutionError(
        cat("jacobi2d_rows: ", rows.sweeps, " sweeps were asked for, allowed are 1 to ", most));
  }
  if (rows.first_column < 0 || rows.last_column < rows.first_column) {
    throw ExecutionError(cat("jacobi2d_rows: norms of columns ", rows.first_column, " to ",
                             rows.last_column, " were asked for, which are none"));
  }
  check_made("jacobi2d_rows", rows);
  if (height < 0) {
    throw ShapeError(cat("jacobi2d_rows: ", padded.shape(0), " rows do not hold the ",
                         2 * rows.sweeps, " halo rows of ", rows.sweeps, " sweeps"));
  }
  const Tensor result =
      prepare_output("jacobi2d_rows", out, {height, rhs.shape(1)}, rhs.dtype(), rhs.device());
  check_no_overlap("jacobi2d_rows", result, padded, "padded");
  check_no_overlap("jacobi2d_rows", result, rhs, "rhs");
  const int64_t measured = rows.sweeps_measured();
  const Shape norms = rows.sweeps == 1 && measured == 1 ? Shape{height} : Shape{measured, height};
  const Tensor made = made_columns(result, rows);
  const JacobiSweep sweep{result, room_for_norms(made, norms)};
  if (made.size() == 0) return sweep;
  RowSweeps wanted = rows;
  wanted.first_column = std::max(rows.first_column, rows.made_begin(result.shape(1)));
  wanted.last_column = std::min(rows.last_column, rows.made_end(result.shape(1)));
  fill_made(result, rhs.dtype(), rows, [&](const Tensor& to) {
    kJacobiRows(rhs.device(), as_pitched(padded), as_pitched(rhs), dx, boundary, wanted, to,
                sweep.row_norms);
  });
  return sweep;
}

Tensor poisson_residual_rows(const Tensor& padded, const Tensor& rhs, double dx,
                             Boundary boundary) {
  check_problem("poisson_residual_rows", padded, rhs, 2, dx);
  const Tensor norms = room_for_norms(rhs, {rhs.shape(0)});
  if (rhs.size() > 0) {
    kResidualRows(rhs.device(), contiguous(padded), contiguous(rhs), dx, boundary, norms);
  }
  return norms;
}

}  // namespace cuop
