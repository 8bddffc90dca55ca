#include "cuop/dist/algo/poisson_internal.h"

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/exec/norms.h"
#include "cuop/dist/exec/sweep.h"
#include "cuop/dist/plan/map_plan.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/poisson/row_sweeps.h"

namespace cuop::dist {

void check_poisson(const std::string& who, const std::vector<Placement>& inputs,
                   const JacobiOptions& options) {
  if (inputs.size() != 2) throw ExecutionError(cat(who, ": rhs was not given"));
  const Placement& grid = inputs[0];
  const Placement& rhs = inputs[1];
  if (grid.shape.ndim() != 2 || rhs.shape != grid.shape) {
    throw ShapeError(cat(who, ": grid ", grid.shape, " and rhs ", rhs.shape,
                         " were given; needed are two of one shape (h, w)"));
  }
  if ((grid.dtype != DType::kFloat32 && grid.dtype != DType::kFloat64) || rhs.dtype != grid.dtype) {
    throw DTypeError(cat(who, ": grid is ", grid.dtype, ", rhs is ", rhs.dtype,
                         "; needed is float32 or float64 for both"));
  }
  if (!(options.dx > 0.0) || options.iterations < 0) {
    throw ExecutionError(cat(who, ": dx ", options.dx, ", iterations ", options.iterations,
                             " were given; dx must be above 0, iterations 0 or more"));
  }
  if (!(options.tolerance >= 0.0)) {
    throw ExecutionError(
        cat(who, ": tolerance ", options.tolerance, " was given; it must be 0 or more"));
  }
}

namespace {

DistTensor in_whole_rows(const DistTensor& x) {
  if (has_whole_rows(x.sharding().owner_boxes(x.shape()), x.shape())) return x;
  return moved_to(x, split_over_ranks(x.comm().size(), 2, 0));
}

}  // namespace

AxisEnds ends_of(Boundary boundary) {
  return boundary == Boundary::kPeriodic ? AxisEnds::kPeriodic : AxisEnds::kZero;
}

PoissonNorms::PoissonNorms(const DistTensor& rhs, double dx, AxisEnds ends)
    : rhs_(in_whole_rows(rhs)), dx_(dx), ends_(ends) {}

Boundary PoissonNorms::sides() const {
  return ends_ == AxisEnds::kPeriodic ? Boundary::kPeriodic : Boundary::kZero;
}

double PoissonNorms::norm(const DistTensor& u, const RowSums& sums) const {
  const DistTensor in_rows = moved_to(u, rhs_.sharding());
  const HaloGrid grid{.blocks = rhs_.sharding().owner_boxes(rhs_.shape()),
                      .shape = rhs_.shape(),
                      .rows = 1,
                      .is_periodic = ends_ == AxisEnds::kPeriodic};
  SweptBlock rows(u.comm(), in_rows.local(), grid);
  rows.exchange_halo();
  Tensor squares = zeros({rhs_.local().shape(0)}, DType::kFloat64, rhs_.device());
  if (!rows.is_empty()) squares = sums(rows.padded(1), rhs_.local());
  return norms_of_rows(u.comm(), unsqueeze(squares, 0), grid.blocks)[0];
}

double PoissonNorms::residual(const DistTensor& u) const {
  return norm(u, [this](const Tensor& padded, const Tensor& rhs) {
    if (ends_ != AxisEnds::kZeroFlux) {
      return cuop::poisson_residual_rows(padded, rhs, dx_, sides());
    }
    const double scale = 1.0 / (dx_ * dx_);
    const FivePoint op{rhs_.shape(0), rhs_.shape(1), scale, scale, ends_};
    const Tensor minus = contiguous(multiply(cast(rhs, DType::kFloat64), -1.0));
    return residual_rows(op, contiguous(cast(padded, DType::kFloat64)), minus, rhs_.box().low[0],
                         {});
  });
}

double PoissonNorms::update(const DistTensor& u) const {
  return norm(u, [this](const Tensor& padded, const Tensor& rhs) {
    return cuop::jacobi2d_rows(padded, rhs, dx_, sides()).row_norms;
  });
}

}  // namespace cuop::dist
