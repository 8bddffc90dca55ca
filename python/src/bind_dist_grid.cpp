// cuop.dist: convolutions, stencils and the Poisson equation over ranks.
#include "binders.h"
#include "cuop/dist/algo/conv.h"
#include "cuop/dist/algo/poisson.h"
#include "cuop/dist/algo/stencil.h"
#include "dist_forms.h"

namespace cuop::python {

namespace {

using dist::CommunicatorPtr;
using dist::DistTensor;
using OptionalSharding = std::optional<dist::Sharding>;

void define_conv(Module& m) {
  m.def(
      "conv",
      [](const DistTensor& x, const DistTensor& weight, std::optional<DistTensor> bias,
         Arg<Shape> stride, Arg<Shape> padding, Arg<Shape> dilation, int64_t groups,
         std::string strategy, OptionalSharding output) {
        return dist::conv(x, weight, bias ? &*bias : nullptr,
                          {*stride, *padding, *dilation, groups},
                          call_options(std::move(strategy), std::move(output)));
      },
      "x"_a, "weight"_a, "bias"_a = nb::none(), nb::kw_only(), "stride"_a = 1, "padding"_a = 0,
      "dilation"_a = 1, "groups"_a = 1, "strategy"_a = "", "output"_a = nb::none(), Released(),
      "Convolution of [N, C, ...] by [O, C / groups, ...] with 1 to 3 spatial dimensions, split by "
      "\"batch\", \"channel\" or \"row\" (with halos). Collective.");
  m.def(
      "conv_from_root",
      [](const CommunicatorPtr& comm, MaybeTensor x, MaybeTensor weight, MaybeTensor bias,
         Arg<Shape> stride, Arg<Shape> padding, Arg<Shape> dilation, int64_t groups,
         std::string strategy) {
        const std::vector<Tensor> inputs = given(comm, "conv", {&x, &weight, &bias});
        return or_none(dist::conv_from_root(comm, inputs[0], inputs[1], inputs[2],
                                            {*stride, *padding, *dilation, groups},
                                            call_options(std::move(strategy))));
      },
      "comm"_a, "x"_a.none(), "weight"_a.none(), "bias"_a = nb::none(), nb::kw_only(),
      "stride"_a = 1, "padding"_a = 0, "dilation"_a = 1, "groups"_a = 1, "strategy"_a = "",
      Released(), "The same from and to rank 0.");
}

void define_stencil(Module& m) {
  define_forms(
      m, "stencil_2d", {"grid", "kernel"}, dist::stencil_2d, dist::stencil_2d_from_root,
      [](std::string_view boundary, int64_t iterations) {
        return std::tuple(parse_boundary(boundary, "stencil_2d"), iterations);
      },
      {"The kernel applied `iterations` times to a grid in blocks with halos: \"row\", \"column\" "
       "or "
       "\"block_2d\"; \"zero\" or \"periodic\" boundary. Collective."},
      "boundary"_a = "zero", "iterations"_a = 1, nb::kw_only());
}

template <class Options>
using SharedSolver = DistTensor (*)(const DistTensor&, const DistTensor&, const Options&,
                                    dist::SolveInfo*, const dist::CallOptions&);
template <class Options>
using RootSolver = Tensor (*)(const CommunicatorPtr&, const Tensor&, const Tensor&, const Options&,
                              dist::SolveInfo*, const dist::CallOptions&);

/// Both forms of a solver return (solution, info).
template <class Options, class Make, class... Names>
void define_solver(Module& m, const char* name, SharedSolver<Options> sharded,
                   RootSolver<Options> rooted, Make make, const char* doc, const Names&... names) {
  define_forms(
      m, name, {"grid", "rhs"},
      [sharded](const DistTensor& grid, const DistTensor& rhs, const Options& options,
                const dist::CallOptions& call) {
        dist::SolveInfo info;
        DistTensor u = sharded(grid, rhs, options, &info, call);
        return std::pair(std::move(u), info);
      },
      [rooted](const CommunicatorPtr& comm, const Tensor& grid, const Tensor& rhs,
               const Options& options, const dist::CallOptions& call) {
        dist::SolveInfo info;
        Tensor u = rooted(comm, grid, rhs, options, &info, call);
        return std::pair(std::move(u), info);
      },
      make, {doc, "The same from and to rank 0; the information is on every rank."}, "dx"_a = 1.0,
      "boundary"_a = "zero", "iterations"_a = 1000, "tol"_a = 1e-6, nb::kw_only(), names...);
}

/// Solvers with the arguments of Jacobi's method.
void define_sweeper(Module& m, const char* name, SharedSolver<JacobiOptions> sharded,
                    RootSolver<JacobiOptions> rooted, const char* doc) {
  define_solver(
      m, name, sharded, rooted,
      [name](double dx, std::string_view boundary, int64_t iterations, double tol) {
        return std::tuple(JacobiOptions{dx, parse_boundary(boundary, name), iterations, tol});
      },
      doc);
}

void define_poisson(Module& m) {
  static constexpr const char* kWho = "solve_poisson_2d";
  define_solver<dist::PoissonOptions>(
      m, kWho, dist::solve_poisson_2d, dist::solve_poisson_2d_from_root,
      [](double dx, std::string_view boundary, int64_t iterations, double tol,
         std::string_view method) {
        return std::tuple(dist::PoissonOptions{dx, dist::parse_poisson_boundary(boundary, kWho),
                                               dist::parse_poisson_method(method, kWho), iterations,
                                               tol});
      },
      "Solves Laplace(u) = rhs from `grid`; returns (u, info). boundary \"zero\", \"periodic\", "
      "\"dirichlet\" (the outermost rows and columns of grid are given values and stay) or "
      "\"neumann\" (no flux through the edges, cells are centers of squares); method \"jacobi\", "
      "\"rb-sor\", \"cg\", \"multigrid\" or \"direct\". At most `iterations` sweeps, iterations or "
      "cycles; tol is of the residual's 2-norm over that of the right-hand side that is solved for "
      "(rhs without its mean where that is left out; with \"dirichlet\" rhs within the edges, less "
      "the given values / dx^2 in the cells beside them; over the first residual where that is 0), "
      "of \"jacobi\" of the 2-norm of a sweep's update. Where the edges leave the mean of u open "
      "it is that of grid, and the mean "
      "of rhs is left out (info.dropped_mean). Collective.",
      "method"_a = "multigrid");
}

}  // namespace

void bind_dist_grid(Module& m) {
  Class<dist::SolveInfo>(m, "SolveInfo", "What a solver says of its work.")
      .def_ro("sweeps", &dist::SolveInfo::sweeps, "Or iterations, or cycles.")
      .def_ro("update_norm", &dist::SolveInfo::update_norm,
              "2-norm of the last update of Jacobi's method over the whole grid.")
      .def_ro("residual_norm", &dist::SolveInfo::residual_norm,
              "2-norm of rhs - Laplace(u) over the whole grid.")
      .def_ro("dropped_mean", &dist::SolveInfo::dropped_mean,
              "Mean of rhs, where the solved equation is without it.");
  define_conv(m);
  define_stencil(m);
  define_sweeper(m, "jacobi_2d", dist::jacobi_2d, dist::jacobi_2d_from_root,
                 "Jacobi's method for Laplace(u) = rhs; returns (u, info). Collective.");
  define_sweeper(
      m, "poisson_2d", dist::poisson_2d, dist::poisson_2d_from_root,
      "Solves Laplace(u) = rhs directly by sine or Fourier transforms; returns (u, info). "
      "Collective.");
  define_poisson(m);
}

}  // namespace cuop::python
