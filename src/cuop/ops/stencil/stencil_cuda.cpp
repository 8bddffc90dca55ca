// Sweeps on a GPU are launches that follow each other; results go to and fro between two grids.
#include <algorithm>

#include "cuop/backend/runtime.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/jit/parameter.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/stencil/stencil_arguments.cuh"
#include "cuop/ops/stencil/stencil_kernels.h"

namespace cuop::kernels {

namespace {

constexpr const char* kPath = "cuop/ops/stencil/stencil.cuh";

/// The grid that `tensor` holds between its halo rows.
jit::StencilGrid grid_of(const Tensor& tensor, int64_t halo, Boundary boundary) {
  const int64_t width = tensor.shape(1);
  return {static_cast<const std::byte*>(tensor.data()) + halo * width * itemsize(tensor.dtype()),
          tensor.shape(0) - 2 * halo, width, halo, boundary == Boundary::kPeriodic ? 1 : 0};
}

template <class To>
void store_weight(const Tap& tap, DType dtype, To& to) {
  const bool has_parts = is_complex(dtype);
  jit::store_parameter(has_parts ? Scalar(tap.weight) : Scalar(tap.weight.real()), dtype, to);
}

/// One application; more weights than a launch takes are added by further ones.
void apply(const jit::StencilGrid& grid, const TapList& list, const Tensor& out) {
  jit::StencilArguments a{};
  a.grid = grid;
  a.out = out.data();
  a.row_radius = list.row_radius;
  const bool is_near = std::max(list.row_radius, list.column_radius) <= jit::kStencilReach;
  const int64_t blocks = is_near
                             ? divide_up(grid.width, jit::kStencilColumns) *
                                   divide_up(grid.height, jit::stencil_rows(itemsize(out.dtype())))
                             : divide_up(grid.width * grid.height, jit::kStencilThreads);
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

/// Several applications in one pass.
void apply(const jit::StencilGrid& grid, const TapList& list, const RowSweeps& rows,
           const Tensor& out) {
  jit::SweepArguments a{};
  a.grid = grid;
  a.out = out.data();
  a.sweeps = rows.sweeps;
  a.first = rows.first;
  a.last = rows.last;
  for (size_t n = 0; n < list.taps.size(); ++n) {
    store_weight(list.taps[n], out.dtype(), a.weight[n]);
  }
  const int64_t edges = 2 * radius_of(list) * (rows.sweeps - 1);
  const int64_t tiles = divide_up(grid.width, jit::kSweepColumns - edges) *
                        divide_up(grid.height, jit::sweep_rows(itemsize(out.dtype())) - edges);
  jit::launch_text(sweep_kernel(out.dtype(), list), out.device(), tiles, &a);
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

/// `out` undefined: the residual's norms alone.
void jacobi(const jit::StencilGrid& grid, const Tensor& rhs, double factor, const Tensor& out,
            double* norms) {
  const bool is_residual = !out.is_defined();
  const jit::JacobiArguments a{grid, rhs.data(), is_residual ? nullptr : out.data(), norms, factor};
  jit::launch_text(jacobi_kernel(rhs.dtype(), is_residual), rhs.device(), grid.height, &a);
}

}  // namespace

jit::TextKernel stencil_kernel(DType dtype, bool is_near, bool is_first) {
  // So many blocks have room for their tiles; what adds to results needs registers for addresses.
  const int resident = is_complex(dtype) ? 4 : itemsize(dtype) == 4 ? 6 : 5;
  return {"stencil2d",
          kPath,
          "StencilArguments",
          cat(is_near ? "stencil_tiles<" : "stencil_cells<", jit::text_type(dtype),
              is_first ? ", true>" : ", false>"),
          jit::kStencilThreads,
          is_near && is_first ? resident : 1};
}

int64_t sweeps_per_pass_cuda(const TapList& list, int64_t itemsize) {
  const auto taps = static_cast<int64_t>(list.taps.size());
  const bool has_kernel = radius_of(list) <= jit::kSweepRadius && taps > 0 &&
                          taps <= jit::kSweepTaps && (itemsize == 4 || itemsize == 8);
  return has_kernel ? jit::kSweepReach / radius_of(list) : 1;
}

jit::TextKernel sweep_kernel(DType dtype, const TapList& list) {
  const auto radius = static_cast<int>(radius_of(list));
  std::string call = cat("stencil_sweeps<", jit::text_type(dtype), ", ", radius);
  for (const Tap& tap : list.taps) call += cat(", At<", tap.row, ", ", tap.column, ">");
  const int64_t item = itemsize(dtype);
  return {.title = "stencil2d_sweeps",
          .path = "cuop/ops/stencil/sweeps.cuh",
          .arguments = "SweepArguments",
          .call = call + ">",
          .threads = jit::kSweepThreads,
          .resident = 2,
          .shared_bytes = static_cast<int>(jit::sweep_cells(item, radius) * item)};
}

jit::TextKernel jacobi_kernel(DType dtype, bool is_residual) {
  return {is_residual ? "poisson_residual" : "jacobi2d", kPath, "JacobiArguments",
          cat("jacobi_rows<", jit::text_type(dtype), is_residual ? ", true>" : ", false>"),
          jit::kStencilThreads};
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
    const jit::StencilGrid source = grid_of(from, 0, boundary);
    if (now == 1) return apply(source, taps, to);
    const bool has_ends = boundary != Boundary::kPeriodic;
    apply(source, taps, has_ends ? RowSweeps{now, 0, height} : RowSweeps{now}, to);
  });
}

void stencil_rows_cuda(const Tensor& padded, const TapList& taps, Boundary boundary,
                       const RowSweeps& rows, const Tensor& out) {
  if (is_by_parts(padded, taps)) {
    return stencil_rows_cuda(by_parts(padded), by_parts(taps), boundary, rows, by_parts(out));
  }
  const jit::StencilGrid source = grid_of(padded, taps.row_radius * rows.sweeps, boundary);
  if (rows.sweeps == 1) return apply(source, taps, out);
  apply(source, taps, rows, out);
}

void jacobi_cuda(const Tensor& u, const Tensor& rhs, double dx, Boundary boundary, int64_t sweeps,
                 const Tensor& out, double* row_norms) {
  const int64_t height = u.shape(0);
  const Tensor norms = empty({sweeps, height}, DType::kFloat64, u.device());
  to_and_fro(u, sweeps, out, [&](int64_t i, const Tensor& from, const Tensor& to) {
    jacobi(grid_of(from, 0, boundary), rhs, dx * dx, to, norms.data<double>() + i * height);
  });
  backend::runtime(u.device())
      .copy(row_norms, norms.data(), norms.nbytes(), current_stream(u.device()));
}

void jacobi_rows_cuda(const Tensor& padded, const Tensor& rhs, double dx, Boundary boundary,
                      const Tensor& out, const Tensor& row_norms) {
  jacobi(grid_of(padded, 1, boundary), rhs, dx * dx, out, row_norms.data<double>());
}

void residual_rows_cuda(const Tensor& padded, const Tensor& rhs, double dx, Boundary boundary,
                        const Tensor& row_norms) {
  jacobi(grid_of(padded, 1, boundary), rhs, 1.0 / (dx * dx), {}, row_norms.data<double>());
}

}  // namespace cuop::kernels
