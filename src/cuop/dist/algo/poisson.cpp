#include <cmath>
#include <iomanip>
#include <numbers>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/text.h"
#include "cuop/dist/algo/poisson_internal.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/redistribute.h"
#include "cuop/dist/plan/pencil_plan.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/fft/fft.h"
#include "cuop/ops/index/view.h"

namespace cuop::dist {
namespace {

/// Eigenvalue number `index` (0 <= index < n) of the second difference u[i-1] - 2 u[i] + u[i+1]: of
/// sine modes when the ends are zero, of Fourier modes when they meet.
double eigenvalue(int64_t index, int64_t n, Boundary boundary) {
  const double angle =
      boundary == Boundary::kZero
          ? std::numbers::pi * static_cast<double>(index + 1) / (2.0 * static_cast<double>(n + 1))
          : std::numbers::pi * static_cast<double>(index) / static_cast<double>(n);
  const double sine = std::sin(angle);
  return -4.0 * sine * sine;
}

struct Spectrum {
  Shape grid;
  JacobiOptions options;
  double zero_mode = 0.0;  ///< coefficient of the constant, periodic only

  /// Divides the coefficients of `box` (contiguous, in place) by the Laplacian's eigenvalues.
  template <class T>
  void divide(T* data, const Box& box) const {
    using Real = decltype(std::abs(T{}));
    const bool is_sine = options.boundary == Boundary::kZero;
    // The unscaled sine transform applied twice multiplies by 2 (n + 1) along each axis.
    const double scale =
        is_sine ? 4.0 * static_cast<double>(grid[0] + 1) * static_cast<double>(grid[1] + 1) : 1.0;
    const int64_t columns = box.interval(1).length();
    std::vector<double> along_row;
    for (int64_t j = box.low[1]; j < box.high[1]; ++j) {
      along_row.push_back(eigenvalue(j, grid[1], options.boundary));
    }
    const double per_dx2 = scale / (options.dx * options.dx);
    backend::parallel_for_each(box.interval(0).length(), 16, [&](int64_t i) {
      const double down = eigenvalue(box.low[0] + i, grid[0], options.boundary);
      T* row = data + i * columns;
      for (int64_t j = 0; j < columns; ++j) {
        const double value = (down + along_row[static_cast<size_t>(j)]) * per_dx2;
        const bool is_constant = !is_sine && box.low[0] + i == 0 && box.low[1] + j == 0;
        row[j] = is_constant ? T(static_cast<Real>(zero_mode)) : row[j] / static_cast<Real>(value);
      }
    });
  }
};

/// One pass over whole rows (axis 1) or columns (axis 0); the Fourier passes back return to real
/// numbers when the last one is done.
Tensor pass(const Tensor& x, int64_t axis, bool is_back, Boundary boundary) {
  if (boundary == Boundary::kZero) return cuop::dst1(x, axis);
  return is_back ? cuop::ifft(x, {}, axis) : cuop::fft(x, {}, axis);
}

double sum_of(const Tensor& x) {
  const Tensor values = contiguous(cuop::cast(x, DType::kFloat64));
  double sum = 0.0;
  for (int64_t i = 0; i < values.size(); ++i) sum += values.data<double>()[i];
  return sum;
}

DistTensor execute_poisson(const Plan& plan, const std::vector<DistTensor>& inputs,
                           const JacobiOptions& options, SolveInfo& info) {
  const Sharding row_slices = whole_rows(plan);
  const Sharding column_slices = whole_columns(plan);
  const DistTensor rhs = moved_to(inputs[1], row_slices);
  Communicator& comm = rhs.comm();
  const Shape& shape = rhs.shape();
  Spectrum spectrum{shape, options, 0.0};
  const bool is_sine = options.boundary == Boundary::kZero;
  const DType working = is_sine ? rhs.dtype() : complex_dtype(rhs.dtype());
  if (!is_sine) {
    double mine = sum_of(moved_to(inputs[0], row_slices).local());
    comm.all_reduce(&mine, &spectrum.zero_mode, 1, DType::kFloat64, ReduceKind::kSum);
  }
  const auto transformed = [&](const DistTensor& x, const Sharding& slices, int64_t axis,
                               bool is_back) {
    const DistTensor here = moved_to(x, slices);
    Tensor local = here.local();
    local = local.size() > 0 ? pass(local, axis, is_back, options.boundary)
                             : cuop::cast(local, working);
    return DistTensor(here.comm_ptr(), slices, shape, working, local);
  };
  DistTensor x = transformed(rhs, row_slices, 1, false);
  x = transformed(x, column_slices, 0, false);
  const Tensor coefficients = contiguous(x.local());
  visit_dtype(FloatComplexTypes{}, working, "poisson_2d",
              [&]<class T>(TypeTag<T>) { spectrum.divide(coefficients.data<T>(), x.box()); });
  x = DistTensor(x.comm_ptr(), column_slices, shape, working, coefficients);
  x = transformed(x, column_slices, 0, true);
  x = transformed(x, row_slices, 1, true);

  const Tensor u = is_sine ? x.local() : clone(select(as_real(x.local()), -1, 0));
  info.residual_norm =
      poisson_residual(comm, u, rhs.local(), row_slices.owner_boxes(shape), shape, options);
  return DistTensor(x.comm_ptr(), row_slices, shape, rhs.dtype(), u);
}

/// Its calls leave in `info` what they did.
Operation operation(const JacobiOptions& options, const std::shared_ptr<SolveInfo>& info) {
  const auto plan = [options](const std::vector<Placement>& inputs,
                              const std::optional<Sharding>& output, const Machine& machine,
                              const std::string& strategy) {
    check_poisson("poisson_2d", inputs, options);
    const DType real = inputs[1].dtype;
    const DType working = options.boundary == Boundary::kZero ? real : complex_dtype(real);
    return plan_pencil({"poisson_2d", inputs[1], working, real, 4, output}, machine, strategy);
  };
  const auto execute = [options, info](const Plan& made, const std::vector<DistTensor>& inputs) {
    *info = {};
    return execute_poisson(made, inputs, options, *info);
  };
  return {cat(std::setprecision(17), "poisson_2d dx ", options.dx, ", boundary ",
              static_cast<int>(options.boundary)),
          {"grid", "rhs"},
          plan,
          execute,
          /*is_on_host=*/true};
}

}  // namespace

DistTensor poisson_2d(const DistTensor& grid, const DistTensor& rhs, const JacobiOptions& options,
                      SolveInfo* info, const CallOptions& call) {
  return with_info(info, [&](const auto& found) {
    return run_sharded(operation(options, found), {grid, rhs}, call);
  });
}

Tensor poisson_2d_from_root(const CommunicatorPtr& comm, const Tensor& grid, const Tensor& rhs,
                            const JacobiOptions& options, SolveInfo* info,
                            const CallOptions& call) {
  return with_info(info, [&](const auto& found) {
    return run_rooted(comm, operation(options, found), {grid, rhs}, call);
  });
}

}  // namespace cuop::dist
