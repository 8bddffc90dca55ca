#include "cuop/ops/stencil/stencil.h"

#include <algorithm>

#include "cuop/backend/slot.h"
#include "cuop/core/enum_names.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"
#include "cuop/ops/stencil/pitched.h"
#include "cuop/ops/stencil/stencil_kernels.h"

namespace cuop {

using kernels::TapList;

namespace {

constexpr backend::Slot kStencil{"stencil2d", &kernels::stencil_cpu, &kernels::stencil_cuda};
constexpr backend::Slot kStencilRows{"stencil2d_rows", &kernels::stencil_rows_cpu,
                                     &kernels::stencil_rows_cuda};

void check_grid(const char* who, const char* what, const Tensor& t) {
  if (t.ndim() != 2) {
    throw ShapeError(cat(who, ": the ", what, " must have 2 dimensions, its shape is ", t.shape()));
  }
}

/// The weights as the grid's dtype rounds them; those that are zero are left out.
TapList make_taps(const char* who, const Tensor& kernel, DType dtype) {
  check_grid(who, "kernel", kernel);
  if (is_complex(kernel.dtype()) && !is_complex(dtype)) {
    throw DTypeError(cat(who, ": the kernel is ", kernel.dtype(), ", the grid is ", dtype,
                         "; a complex kernel needs a complex grid"));
  }
  if (kernel.shape(0) % 2 == 0 || kernel.shape(1) % 2 == 0) {
    throw ShapeError(cat(who, ": the kernel's sizes must be odd, its shape is ", kernel.shape()));
  }
  const Tensor rounded = to_device(cast(cast(kernel, dtype), DType::kComplex128), kCpu);
  const Tensor weights = contiguous(rounded);
  TapList list{kernel.shape(0) / 2, kernel.shape(1) / 2, {}};
  for (int64_t a = 0; a < kernel.shape(0); ++a) {
    for (int64_t b = 0; b < kernel.shape(1); ++b) {
      const auto weight = weights.data<std::complex<double>>()[a * kernel.shape(1) + b];
      if (weight != 0.0) {
        list.taps.push_back({a - list.row_radius, b - list.column_radius, weight});
      }
    }
  }
  return list;
}

void check_inexact(const char* who, const Tensor& t) {
  visit_dtype(InexactTypes{}, t.dtype(), who, [](auto) {});
}

/// `sweeps` applications, between which an interrupt is heard.
Tensor run_sweeps(const Tensor& grid, const TapList& taps, Boundary boundary, int64_t sweeps) {
  constexpr int64_t kSweepsOnGpu = 256;
  const int64_t most =
      grid.device().is_cpu()
          ? kernels::sweeps_per_pass(grid.shape(1), taps.row_radius, itemsize(grid.dtype()))
          : kSweepsOnGpu;
  Tensor current = grid, spare;
  for (int64_t done = 0; done < sweeps;) {
    check_interrupt();
    const int64_t now = std::min(most, sweeps - done);
    Tensor next = spare.is_defined() ? spare : empty(grid.shape(), grid.dtype(), grid.device());
    kStencil(grid.device(), current, taps, boundary, now, next);
    spare = done == 0 ? Tensor() : current;  // the caller's grid is not ours to write
    current = next;
    done += now;
  }
  return current;
}

int64_t sweeps_at_once(const Tensor& grid, const TapList& taps) {
  if (grid.device().is_cpu() || compute_dtype(grid.dtype()) != grid.dtype()) return 1;
  const bool has_parts = kernels::is_by_parts(grid, taps);
  return kernels::sweeps_per_pass_cuda(has_parts ? kernels::by_parts(taps) : taps,
                                       itemsize(grid.dtype()) / (has_parts ? 2 : 1));
}

}  // namespace

Boundary parse_boundary(std::string_view text, const char* who) {
  return parse_name<Boundary>(cat(who, ": boundary"), {"zero", "periodic"}, text);
}

Tensor stencil2d(const Tensor& grid, const Tensor& kernel, Boundary boundary, int64_t iterations,
                 const Tensor* out) {
  const trace::Span span("stencil2d", "op");
  check_grid("stencil2d", "grid", grid);
  check_inexact("stencil2d", grid);
  if (iterations < 0) {
    throw ExecutionError(cat("stencil2d: iterations is ", iterations, ", it must not be negative"));
  }
  const TapList taps = make_taps("stencil2d", kernel, grid.dtype());
  const Tensor result = prepare_output("stencil2d", out, grid.shape(), grid.dtype(), grid.device());
  check_no_overlap("stencil2d", result, grid, "grid");
  const DType compute = compute_dtype(grid.dtype());
  Tensor current = contiguous(cast(grid, compute));
  if (grid.size() == 0 || iterations == 0) {
    copy_into(result, grid);
    return result;
  }
  const bool is_direct = result.is_contiguous() && compute == grid.dtype();
  if (iterations == 1 && is_direct) {
    kStencil(grid.device(), current, taps, boundary, 1, result);
    return result;
  }
  if (compute == grid.dtype()) {
    current = run_sweeps(current, taps, boundary, iterations);
  } else {
    // The 16-bit grids are rounded after each application.
    for (int64_t i = 0; i < iterations; ++i) {
      current = run_sweeps(current, taps, boundary, 1);
      if (i + 1 < iterations) current = cast(cast(current, grid.dtype()), compute);
    }
  }
  copy_into(result, current);
  return result;
}

int64_t row_sweeps_at_once(const Tensor& grid, const Tensor& kernel) {
  return sweeps_at_once(grid, make_taps("stencil2d_rows", kernel, grid.dtype()));
}

Tensor stencil2d_rows(const Tensor& padded, const Tensor& kernel, Boundary boundary,
                      const Tensor* out, const RowSweeps& rows) {
  const trace::Span span("stencil2d_rows", "op");
  check_grid("stencil2d_rows", "grid", padded);
  check_inexact("stencil2d_rows", padded);
  const TapList taps = make_taps("stencil2d_rows", kernel, padded.dtype());
  const int64_t most = sweeps_at_once(padded, taps);
  if (rows.sweeps < 1 || rows.sweeps > most) {
    throw ExecutionError(
        cat("stencil2d_rows: ", rows.sweeps, " sweeps were asked for, allowed are 1 to ", most));
  }
  check_made("stencil2d_rows", rows);
  const int64_t halo = 2 * taps.row_radius * rows.sweeps, height = padded.shape(0) - halo;
  if (height < 0) {
    throw ShapeError(cat("stencil2d_rows: ", padded.shape(0), " rows do not hold the ", halo,
                         " halo rows of the kernel"));
  }
  const Tensor result = prepare_output("stencil2d_rows", out, {height, padded.shape(1)},
                                       padded.dtype(), padded.device());
  check_no_overlap("stencil2d_rows", result, padded, "padded");
  if (made_columns(result, rows).size() == 0) return result;
  const DType compute = compute_dtype(padded.dtype());
  const Tensor source = as_pitched(cast(padded, compute));
  fill_made(result, compute, rows, [&](const Tensor& to) {
    kStencilRows(padded.device(), source, taps, boundary, rows, to);
  });
  return result;
}

}  // namespace cuop
