#include <cmath>
#include <functional>
#include <iomanip>
#include <numbers>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/text.h"
#include "cuop/dist/algo/poisson_internal.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/passes.h"
#include "cuop/dist/exec/redistribute.h"
#include "cuop/dist/plan/pass_plan.h"
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

  /// Divides the coefficients of `box` in place by the Laplacian's eigenvalues.
  template <class T>
  void divide(T* data, const Dims& strides, const Box& box) const {
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
      T* row = data + i * strides[0];
      for (int64_t j = 0; j < columns; ++j) {
        const double value = (down + along_row[static_cast<size_t>(j)]) * per_dx2;
        const bool is_constant = !is_sine && box.low[0] + i == 0 && box.low[1] + j == 0;
        T& mode = row[j * strides[1]];
        mode = is_constant ? T(static_cast<Real>(zero_mode)) : mode / static_cast<Real>(value);
      }
    });
  }
};

/// The passes there (rows, columns) and back; the Fourier ones return to real numbers when the last
/// is done.
constexpr size_t kPassesThere = 2;

void transform(const Tensor& x, const RankPass& pass, Boundary boundary) {
  const int axis = pass.axes.front();
  if (boundary == Boundary::kZero) {
    cuop::dst1(x, axis, &pass.into);
  } else {
    const auto run = pass.number < kPassesThere ? cuop::fft : cuop::ifft;
    run(x, {}, axis, FftNorm::kBackward, &pass.into);
  }
}

double sum_of(const Tensor& x) {
  const Tensor values = contiguous(cuop::cast(x, DType::kFloat64));
  double sum = 0.0;
  for (int64_t i = 0; i < values.size(); ++i) sum += values.data<double>()[i];
  return sum;
}

DistTensor execute_poisson(const Plan& plan, const std::vector<DistTensor>& inputs,
                           const JacobiOptions& options, SolveInfo& info) {
  const Sharding& slices = plan.inputs[0].sharding;
  const DistTensor rhs = moved_to(inputs[1], slices);
  Communicator& comm = rhs.comm();
  const Shape& shape = rhs.shape();
  Spectrum spectrum{shape, options, 0.0};
  const bool is_sine = options.boundary == Boundary::kZero;
  if (!is_sine) {
    double mine = sum_of(moved_to(inputs[0], slices).local());
    comm.all_reduce(&mine, &spectrum.zero_mode, 1, DType::kFloat64, ReduceKind::kSum);
  }
  const DistTensor x = follow_passes(plan, rhs, [&](const Tensor& part, const RankPass& pass) {
    transform(part, pass, options.boundary);
    if (pass.number + 1 != kPassesThere) return;
    const Tensor& made = pass.into;
    visit_dtype(FloatComplexTypes{}, made.dtype(), "poisson_2d", [&]<class T>(TypeTag<T>) {
      spectrum.divide(made.data<T>(), made.layout().strides, pass.box);
    });
  });
  const Tensor u = is_sine ? x.local() : clone(select(as_real(x.local()), -1, 0));
  info.residual_norm =
      poisson_residual(comm, u, rhs.local(), slices.owner_boxes(shape), shape, options);
  return DistTensor(x.comm_ptr(), slices, shape, rhs.dtype(), u);
}

Plan plan_poisson(const JacobiOptions& options, const std::vector<Placement>& inputs,
                  const std::optional<Sharding>& output, const Machine& machine,
                  const std::string& strategy) {
  check_poisson("poisson_2d", inputs, options);
  const Placement& rhs = inputs[1];
  const DType working = options.boundary == Boundary::kZero ? rhs.dtype : complex_dtype(rhs.dtype);
  const auto passes = [&](const char* name, const Sharding& rows, const Sharding& columns) {
    PassChoice choice{name, "", {}};
    for (const int axis : {1, 0, 0, 1}) {
      choice.passes.push_back({axis == 1 ? rows : columns, {axis}, rhs.shape, working});
    }
    return choice;
  };
  PassProblem problem{"poisson_2d", rhs, {}, rhs.dtype, output};
  if (rhs.sharding.single_rank() >= 0) {
    problem.choices.push_back(passes("root", rhs.sharding, rhs.sharding));
  }
  const Mesh line = Mesh::line(rhs.sharding.mesh().size());
  problem.choices.push_back(
      passes("pencil", Sharding(line, split_dim(2, 0)), Sharding(line, split_dim(2, 1))));
  return plan_passes(problem, machine, strategy);
}

/// Its calls leave in `info` what they did.
Operation operation(const JacobiOptions& options, const std::shared_ptr<SolveInfo>& info) {
  const auto execute = [options, info](const Plan& made, const std::vector<DistTensor>& inputs) {
    *info = {};
    return execute_poisson(made, inputs, options, *info);
  };
  return {cat(std::setprecision(17), "poisson_2d dx ", options.dx, ", boundary ",
              static_cast<int>(options.boundary)),
          {"grid", "rhs"},
          std::bind_front(plan_poisson, options),
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
