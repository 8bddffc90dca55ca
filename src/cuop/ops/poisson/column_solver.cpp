#include "cuop/ops/poisson/column_solver.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"

namespace cuop::kernels {

namespace {

/// u of a column of which only the mean is open: differences are added up twice.
template <class T>
std::vector<double> open_column(const T* f, int64_t rows, int64_t step, double factor,
                                double mean) {
  std::vector<double> u(static_cast<size_t>(rows));
  const auto given = [=](size_t i) {
    return static_cast<double>(f[static_cast<int64_t>(i) * step]);
  };
  double left_out = 0;
  for (size_t i = 0; i < u.size(); ++i) left_out += given(i);
  left_out /= static_cast<double>(rows);
  double slope = 0, value = 0, total = 0;
  for (size_t i = 0; i < u.size(); ++i) {
    u[i] = value;
    total += value;
    slope += factor * (given(i) - left_out);
    value += slope;
  }
  for (double& each : u) each += mean - total / static_cast<double>(rows);
  return u;
}

/// The column that is open, if there is one.
std::optional<int64_t> find_open_column(const ColumnEquations& equations) {
  if (equations.ends == AxisEnds::kZero) return {};
  const auto found = std::ranges::find(equations.shifts, 0.0);
  if (found == equations.shifts.end()) return {};
  return found - equations.shifts.begin();
}

template <class T>
void solve(const ColumnEquations& equations, const Tensor& f, const Tensor& u) {
  const auto run = isa::choose([]<class Level>(Level) { return &solve_block<Level, T>; });
  const int64_t rows = f.shape(0), columns = f.shape(1);
  const T* const from = f.data<T>();
  T* const to = u.data<T>();
  const auto [f_row, f_column] = std::pair(f.strides()[0], f.strides()[1]);
  const auto [u_row, u_column] = std::pair(u.strides()[0], u.strides()[1]);
  const std::optional<int64_t> open = find_open_column(equations);
  std::vector<double> open_u;  // before u takes the place of f
  if (open) {
    open_u = open_column(from + *open * f_column, rows, f_row, equations.factor, equations.mean);
  }
  const int64_t blocks = divide_up(columns, kColumns), width = std::min(columns, kColumns);
  backend::parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
    const auto scratch =
        std::make_unique_for_overwrite<double[]>(static_cast<size_t>(2 * rows * width));
    for (int64_t at = begin; at < end; ++at) {
      const int64_t first = at * kColumns, count = std::min(kColumns, columns - first);
      // That of an open column is of one that can be solved.
      std::array<double, kColumns> shifts;
      std::copy_n(equations.shifts.data() + first, count, shifts.data());
      if (open && *open >= first && *open < first + count) {
        shifts[static_cast<size_t>(*open - first)] = 1.0;
      }
      run({from + first * f_column, to + first * u_column, rows, count, f_row, f_column, u_row,
           u_column, equations.ends == AxisEnds::kZero, equations.factor, shifts.data(),
           scratch.get()});
    }
  });
  for (size_t i = 0; i < open_u.size(); ++i) {
    to[static_cast<int64_t>(i) * u_row + *open * u_column] = static_cast<T>(open_u[i]);
  }
}

}  // namespace

void solve_columns(const ColumnEquations& equations, const Tensor& f, const Tensor& u) {
  if (u.size() == 0) return;
  if (f.dtype() == DType::kFloat32) return solve<float>(equations, f, u);
  solve<double>(equations, f, u);
}

}  // namespace cuop::kernels
