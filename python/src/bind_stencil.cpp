#include "binders.h"
#include "cuop/ops/create/empty.h"
#include "cuop/ops/stencil/stencil.h"

namespace cuop::python {

namespace {

using OptionalKernel = std::optional<Arg<Tensor>>;

/// Of the constants themselves, read-only: what makes memory reads the environment, and a module
/// that is being made has nowhere to say that a value in it is wrong.
Tensor laplacian(std::span<const double> weights) {
  return from_memory(const_cast<double*>(weights.data()), contiguous_layout({3, 3}),
                     DType::kFloat64, kCpu, nullptr, true);
}

Tensor kernel_or_default(const OptionalKernel& kernel) {
  return kernel ? **kernel : laplacian(kLaplacian5pt);
}

}  // namespace

void bind_stencil(Module& m) {
  m.attr("LAPLACIAN_5PT") = laplacian(kLaplacian5pt);
  m.attr("LAPLACIAN_9PT") = laplacian(kLaplacian9pt);
  m.def(
      "stencil2d",
      [](Arg<Tensor> grid, OptionalKernel kernel, const std::string& boundary, int64_t iterations,
         std::optional<Tensor> out) {
        return stencil2d(grid, kernel_or_default(kernel), parse_boundary(boundary, "stencil2d"),
                         iterations, pointer(out));
      },
      "grid"_a, "kernel"_a = nb::none(), "boundary"_a = "zero", "iterations"_a = 1,
      "out"_a = nb::none(), ReturnsOut(), Released(),
      "Applies `kernel` (odd sizes, the 5-point Laplacian by default) to the 2-D grid `iterations` "
      "times: out[i,j] = sum kernel[a,b] grid[i+a-r, j+b-s]. Outside lie zeros ('zero') or the "
      "opposite side ('periodic'). Floating and complex dtypes; the kernel is converted to the "
      "grid's. Raises ShapeError and DTypeError.");
  m.def(
      "stencil2d_rows",
      [](Arg<Tensor> padded, OptionalKernel kernel, const std::string& boundary,
         std::optional<Tensor> out) {
        return stencil2d_rows(padded, kernel_or_default(kernel),
                              parse_boundary(boundary, "stencil2d_rows"), pointer(out));
      },
      "padded"_a, "kernel"_a = nb::none(), "boundary"_a = "zero", "out"_a = nb::none(),
      ReturnsOut(), Released(),
      "One application to rows whose r halo rows above and below are part of `padded`; `boundary` "
      "rules the columns. The bits are those of stencil2d on the whole grid.");
  m.def(
      "jacobi2d",
      [](Arg<Tensor> u, Arg<Tensor> rhs, double dx, const std::string& boundary, int64_t iterations,
         double tol, bool return_info, std::optional<Tensor> out) -> nb::object {
        const JacobiResult made = without_gil([&] {
          return jacobi2d(u, rhs, {dx, parse_boundary(boundary, "jacobi2d"), iterations, tol},
                          pointer(out));
        });
        if (!return_info) return nb::cast(made.u);
        return nb::make_tuple(made.u,
                              record_of("sweeps", made.sweeps, "update_norm", made.update_norm,
                                        "residual_norm", made.residual_norm));
      },
      "u"_a, "rhs"_a, "dx"_a = 1.0, "boundary"_a = "zero", "iterations"_a = 1000, "tol"_a = 1e-6,
      "return_info"_a = false, "out"_a = nb::none(), ReturnsOut(),
      "Jacobi sweeps u <- (N + S + E + W - dx^2 rhs) / 4 until the 2-norm of an update is below "
      "`tol` or `iterations` are done. float32, float64. With return_info also a dict of sweeps, "
      "update_norm and residual_norm.");
  m.def(
      "jacobi2d_rows",
      [](Arg<Tensor> padded, Arg<Tensor> rhs, double dx, const std::string& boundary,
         std::optional<Tensor> out) {
        const JacobiSweep sweep =
            jacobi2d_rows(padded, rhs, dx, parse_boundary(boundary, "jacobi2d_rows"), pointer(out));
        return std::pair(sweep.u, sweep.squared_norm());
      },
      "padded"_a, "rhs"_a, "dx"_a = 1.0, "boundary"_a = "zero", "out"_a = nb::none(), ReturnsOut(),
      Released(),
      "One Jacobi sweep over rows with a halo row above and below; also the update's squared "
      "2-norm.");
}

}  // namespace cuop::python
