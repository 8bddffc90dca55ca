// Sweeps on a GPU are launches that follow each other; results go to and fro between two grids.
#include <algorithm>

#include "cuop/backend/runtime.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/jit/parameter.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/reduce/reduce.h"
#include "cuop/ops/stencil/stencil_arguments.cuh"
#include "cuop/ops/stencil/stencil_kernels.h"

namespace cuop::kernels {

namespace {

constexpr const char* kPath = "cuop/ops/stencil/stencil.cuh";

/// Elements from a row to the next.
int64_t pitch_of(const Tensor& tensor) {
  return tensor.shape(0) > 1 ? tensor.strides()[0] : tensor.shape(1);
}

/// The grid that `tensor` holds between its halo rows.
jit::StencilGrid grid_of(const Tensor& tensor, int64_t halo, Boundary boundary) {
  const int64_t pitch = pitch_of(tensor);
  return {static_cast<const std::byte*>(tensor.data()) + halo * pitch * itemsize(tensor.dtype()),
          tensor.shape(0) - 2 * halo,
          tensor.shape(1),
          halo,
          pitch,
          boundary == Boundary::kPeriodic ? 1 : 0};
}

/// The columns of `tensor` that are made.
jit::StencilResult result_of(const Tensor& tensor, const RowSweeps& rows) {
  const int64_t width = tensor.shape(1);
  const int64_t pack = 16 / itemsize(tensor.dtype()), begin = rows.made_begin(width);
  return {tensor.data(), pitch_of(tensor), begin, rows.made_end(width), begin / pack * pack};
}

template <class To>
void store_weight(const Tap& tap, DType dtype, To& to) {
  const bool has_parts = is_complex(dtype);
  jit::store_parameter(has_parts ? Scalar(tap.weight) : Scalar(tap.weight.real()), dtype, to);
}

/// One application; more weights than a launch takes are added by further ones.
void apply_once(const jit::StencilGrid& grid, const TapList& list, const RowSweeps& rows,
                const Tensor& out) {
  jit::StencilArguments a{};
  a.grid = grid;
  a.out = result_of(out, rows);
  a.row_radius = list.row_radius;
  const bool is_near = std::max(list.row_radius, list.column_radius) <= jit::kStencilReach;
  const int64_t item = itemsize(out.dtype());
  const int64_t blocks =
      is_near ? jit::tiles_in_a_row(a.out, jit::kStencilColumns) *
                    divide_up(grid.height, jit::stencil_rows(item))
              : divide_up((a.out.end - a.out.begin) * grid.height, jit::kStencilThreads);
  const auto count = static_cast<int64_t>(list.taps.size());
  int64_t done = 0;
  do {
    a.taps = std::min<int64_t>(jit::kStencilTaps, count - done);
    for (int64_t n = 0; n < a.taps; ++n) {
      const Tap& tap = list.taps[static_cast<size_t>(done + n)];
      jit::StencilTap& to = a.tap[n];
      to.row = static_cast<int32_t>(tap.row);
      to.column = static_cast<int32_t>(tap.column);
      store_weight(tap, out.dtype(), to.weight);
    }
    jit::launch_text(stencil_kernel(out.dtype(), is_near, done == 0), out.device(), blocks, &a);
    done += a.taps;
  } while (done < count);
}

int64_t radius_of(const TapList& list) {
  return std::max<int64_t>(1, std::max(list.row_radius, list.column_radius));
}

jit::SweptGrid swept(const jit::StencilGrid& grid, const RowSweeps& rows, const Tensor& out) {
  return {grid, result_of(out, rows), rows.sweeps, rows.first, rows.last};
}

/// Tiles in a row, of which `edge` columns on each side are no result.
int64_t tiles_across(const jit::SweptGrid& swept, int64_t edge, DType dtype) {
  const int64_t item = itemsize(dtype);
  const int64_t margin = jit::sweep_margin(static_cast<int>(edge), item);
  return jit::tiles_in_a_row(swept.out, jit::sweep_columns(item) - 2 * margin);
}

/// Whether rows lie apart, or some columns alone are made.
bool is_part(const jit::SweptGrid& swept) {
  const jit::StencilGrid& grid = swept.grid;
  const jit::StencilResult& out = swept.out;
  return grid.pitch != grid.width || out.pitch != grid.width || out.end - out.begin != grid.width;
}

/// All rows of a grid that is not a part of another.
RowSweeps whole_grid(int64_t sweeps, int64_t height, Boundary boundary) {
  return boundary == Boundary::kPeriodic ? RowSweeps{sweeps} : RowSweeps{sweeps, 0, height};
}

/// Several applications in one pass.
void apply_at_once(const jit::StencilGrid& grid, const TapList& list, const RowSweeps& rows,
                   const Tensor& out) {
  jit::SweepArguments a{.swept = swept(grid, rows, out), .weight = {}};
  for (size_t n = 0; n < list.taps.size(); ++n) {
    store_weight(list.taps[n], out.dtype(), a.weight[n]);
  }
  const int64_t edge = radius_of(list) * rows.sweeps;
  const int64_t tiles =
      tiles_across(a.swept, edge, out.dtype()) * divide_up(grid.height, jit::kSweepRows - 2 * edge);
  jit::launch_text(sweep_kernel(out.dtype(), list, is_part(a.swept)), out.device(), tiles, &a);
}

void apply(const jit::StencilGrid& grid, const TapList& list, const RowSweeps& rows,
           const Tensor& out) {
  if (rows.sweeps == 1) return apply_once(grid, list, rows, out);
  apply_at_once(grid, list, rows, out);
}

/// Calls sweep(i, from, to) `sweeps` times, so that the last result is `out` and the source stays.
template <class Sweep>
void to_and_fro(const Tensor& source, int64_t sweeps, const Tensor& out, Sweep&& sweep) {
  const Tensor other = sweeps > 1 ? empty(out.shape(), out.dtype(), out.device()) : out;
  const Tensor* from = &source;
  for (int64_t i = 0; i < sweeps; ++i) {
    const Tensor* to = (sweeps - i) % 2 == 1 ? &out : &other;
    sweep(i, *from, *to);
    from = to;
  }
}

jit::NormColumns counted(const RowSweeps& rows, int64_t width) {
  return {rows.first_column, std::min(rows.last_column, width)};
}

/// `out` undefined: the residual's norms alone. No norms where `norms` has no elements.
void jacobi_once(const jit::StencilGrid& grid, const Tensor& rhs, const RowSweeps& rows,
                 double factor, const Tensor& out, const Tensor& norms) {
  const bool is_residual = !out.is_defined();
  const jit::JacobiArguments a{
      grid,
      grid_of(rhs, 0, Boundary::kZero),
      is_residual ? jit::StencilResult{nullptr, 0, 0, grid.width, 0} : result_of(out, rows),
      norms.size() > 0 ? norms.data<double>() : nullptr,
      counted(rows, grid.width),
      factor};
  jit::launch_text(jacobi_kernel(rhs.dtype(), is_residual), rhs.device(), grid.height, &a);
}

/// Several sweeps in one pass; norms [n, height] of the last n.
void jacobi_at_once(const jit::StencilGrid& grid, const jit::StencilGrid& rhs,
                    const RowSweeps& rows, double factor, const Tensor& out, const Tensor& norms) {
  const jit::SweptGrid all = swept(grid, rows, out);
  const int64_t across = tiles_across(all, rows.sweeps, out.dtype());
  const int64_t measured = norms.shape(0);
  const Tensor of_tiles = empty({measured, grid.height, across}, DType::kFloat64, out.device());
  const jit::JacobiSweepArguments a{
      all, rhs, of_tiles.data<double>(), rows.sweeps - measured, counted(rows, grid.width), factor};
  const int64_t tiles = across * divide_up(grid.height, jit::kSweepRows - 2 * rows.sweeps);
  const bool has_gaps = is_part(all) || rhs.pitch != rhs.width;
  jit::launch_text(jacobi_sweep_kernel(out.dtype(), has_gaps, measured > 0), out.device(), tiles,
                   &a);
  if (measured > 0) cuop::sum(of_tiles, Axes{2}, false, SumMode::kPlain, &norms);
}

}  // namespace

jit::TextKernel stencil_kernel(DType dtype, bool is_near, bool is_first) {
  // So many blocks have room for their tiles; what adds to results needs registers for addresses.
  const int resident = is_complex(dtype) ? 4 : itemsize(dtype) == 4 ? 6 : 5;
  return {"stencil2d",
          kPath,
          "StencilArguments",
          jit::instance(is_near ? "stencil_tiles" : "stencil_cells", dtype, is_first),
          jit::kStencilThreads,
          is_near && is_first ? resident : 1};
}

int64_t sweeps_per_pass_cuda(const TapList& list, int64_t itemsize) {
  const auto taps = static_cast<int64_t>(list.taps.size());
  const bool has_kernel = radius_of(list) <= jit::kSweepRadius && taps > 0 &&
                          taps <= jit::kSweepTaps && (itemsize == 4 || itemsize == 8);
  return has_kernel ? jit::sweep_reach(taps) / radius_of(list) : 1;
}

jit::TextKernel sweep_kernel(DType dtype, const TapList& list, bool is_part) {
  std::string reach = cat(is_part ? "true, " : "false, ", radius_of(list));
  for (const Tap& tap : list.taps) reach += cat(", At<", tap.row, ", ", tap.column, ">");
  return {.title = "stencil2d_sweeps",
          .path = "cuop/ops/stencil/sweeps.cuh",
          .arguments = "SweepArguments",
          .call = jit::instance("stencil_sweeps", dtype, reach),
          .threads = jit::kSweepThreads,
          .resident = itemsize(dtype) <= 4 ? 3 : 2};
}

int64_t jacobi_sweeps_per_pass_cuda() {
  constexpr int64_t kCellsRead = 5;
  return jit::sweep_reach(kCellsRead);
}

jit::TextKernel jacobi_sweep_kernel(DType dtype, bool is_part, bool has_norms) {
  return {.title = "jacobi2d_sweeps",
          .path = "cuop/ops/stencil/sweeps.cuh",
          .arguments = "JacobiSweepArguments",
          .call = jit::instance("jacobi_sweeps", dtype, is_part, has_norms),
          .threads = jit::kSweepThreads,
          .resident = 2,
          .shared_bytes = jit::sweep_edge_bytes(1) + jit::kSweepRhsBytes};
}

jit::TextKernel jacobi_kernel(DType dtype, bool is_residual) {
  return {is_residual ? "poisson_residual" : "jacobi2d", kPath, "JacobiArguments",
          jit::instance("jacobi_rows", dtype, is_residual), jit::kStencilThreads};
}

void stencil_cuda(const Tensor& grid, const TapList& taps, Boundary boundary, int64_t sweeps,
                  const Tensor& out) {
  if (is_by_parts(grid, taps)) {
    return stencil_cuda(by_parts(grid), by_parts(taps), boundary, sweeps, by_parts(out));
  }
  const int64_t passes = divide_up(sweeps, sweeps_per_pass_cuda(taps, itemsize(grid.dtype())));
  const int64_t height = grid.shape(0);
  to_and_fro(grid, passes, out, [&](int64_t i, const Tensor& from, const Tensor& to) {
    const int64_t now = sweeps * (i + 1) / passes - sweeps * i / passes;
    apply(grid_of(from, 0, boundary), taps, whole_grid(now, height, boundary), to);
  });
}

void stencil_rows_cuda(const Tensor& padded, const TapList& taps, Boundary boundary,
                       const RowSweeps& rows, const Tensor& out) {
  if (is_by_parts(padded, taps)) {
    RowSweeps of_parts = rows;
    of_parts.first_made = 2 * rows.made_begin(out.shape(1));
    of_parts.last_made = 2 * rows.made_end(out.shape(1));
    return stencil_rows_cuda(by_parts(padded), by_parts(taps), boundary, of_parts, by_parts(out));
  }
  apply(grid_of(padded, taps.row_radius * rows.sweeps, boundary), taps, rows, out);
}

void jacobi_cuda(const Tensor& u, const Tensor& rhs, double dx, Boundary boundary, int64_t sweeps,
                 const Tensor& out, double* row_norms, int64_t measured) {
  const int64_t height = u.shape(0), passes = divide_up(sweeps, jacobi_sweeps_per_pass_cuda());
  const Tensor norms = empty({measured, height}, DType::kFloat64, u.device());
  to_and_fro(u, passes, out, [&](int64_t i, const Tensor& from, const Tensor& to) {
    const int64_t done = sweeps * i / passes, now = sweeps * (i + 1) / passes - done;
    const auto of_measured = [&](int64_t sweep) {
      return std::max<int64_t>(0, sweep - (sweeps - measured));
    };
    const Tensor own = slice(norms, 0, of_measured(done), of_measured(done + now));
    const jit::StencilGrid grid = grid_of(from, 0, boundary);
    if (now == 1) return jacobi_once(grid, rhs, {}, dx * dx, to, own);
    jacobi_at_once(grid, grid_of(rhs, 0, boundary), whole_grid(now, height, boundary), dx * dx, to,
                   own);
  });
  backend::runtime(u.device())
      .copy(row_norms, norms.data(), norms.nbytes(), current_stream(u.device()));
}

void jacobi_rows_cuda(const Tensor& padded, const Tensor& rhs, double dx, Boundary boundary,
                      const RowSweeps& rows, const Tensor& out, const Tensor& row_norms) {
  const jit::StencilGrid grid = grid_of(padded, rows.sweeps, boundary);
  if (rows.sweeps == 1) return jacobi_once(grid, rhs, rows, dx * dx, out, row_norms);
  jacobi_at_once(grid, grid_of(rhs, rows.sweeps - 1, boundary), rows, dx * dx, out, row_norms);
}

void residual_rows_cuda(const Tensor& padded, const Tensor& rhs, double dx, Boundary boundary,
                        const Tensor& row_norms) {
  jacobi_once(grid_of(padded, 1, boundary), rhs, {}, 1.0 / (dx * dx), {}, row_norms);
}

}  // namespace cuop::kernels
