"""Stencils and the Poisson equation on grids that lie on rank 0.

Every rank makes the same call; arrays are given on rank 0 and are None elsewhere, the result comes
back on rank 0 as the kind of the grid. Errors raise MPIError on every rank.
"""

import numpy as np

import cuop
from cuop import dist
from cuop._arguments import describe, switch
from distributed_gpu._call import check_manager, from_root, told

__all__ = [
    "DEFAULT_LAPLACIAN_5PT",
    "DEFAULT_LAPLACIAN_9PT",
    "distributed_jacobi_2d",
    "distributed_stencil_2d",
]

DEFAULT_LAPLACIAN_5PT = np.array([[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]])
DEFAULT_LAPLACIAN_9PT = np.array([[1.0, 4.0, 1.0], [4.0, -20.0, 4.0], [1.0, 4.0, 1.0]]) / 6.0

_METHODS = ("jacobi", "rb-sor", "cg", "multigrid", "direct")
_BOUNDARIES = ("zero", "periodic", "dirichlet", "neumann")


def distributed_stencil_2d(
    grid, mpi, distributor, stencil_kernel=None, boundary="zero", iterations=1
):
    """The kernel (default the 5-point Laplacian) applied `iterations` times to a grid [h, w].

    The grid is of a floating or complex dtype. Any kernel of odd sizes, read on rank 0; boundary
    "zero" or "periodic".
    """
    kernel = DEFAULT_LAPLACIAN_5PT if stencil_kernel is None else stencil_kernel
    arrays = {"grid": grid, "stencil_kernel": kernel}
    return from_root(dist.stencil_2d_from_root, mpi, arrays, boundary, iterations)


def distributed_jacobi_2d(
    grid,
    rhs,
    mpi,
    distributor,
    dx=1.0,
    boundary="zero",
    iterations=1000,
    tol=1e-6,
    *,
    method="jacobi",
    return_info=False,
):
    """Solves Laplace(u) = rhs, starting from `grid`.

    method "jacobi": u <- (N + S + E + W - dx^2 rhs) / 4 a sweep; stops early when the 2-norm of a
    sweep's update over the whole grid is below `tol`. Others stop when the 2-norm of the residual is
    at most `tol` times that of the right-hand side that is solved for: rhs without its mean where that
    is left out, with "dirichlet" rhs within the edges, less the given values / dx^2 in the cells beside
    them (where that is zero, times that of the first residual):
    "rb-sor", over-relaxation in red-black order with the best factor; "cg", conjugate gradients;
    "multigrid", V-cycles, of which each takes seven to ten times off the residual whatever the size;
    "direct", by sine, cosine or Fourier transforms, to rounding whatever `tol`. `iterations` bounds
    sweeps, iterations or cycles.

    boundary "zero": zeros around the grid; "periodic"; "dirichlet": the outermost rows and columns
    of `grid` are given values, which stay, and rhs counts within them alone; "neumann": nothing flows
    through the edges, each of which has its own cell beyond it once more. Where the edges leave
    the mean of u open ("periodic", "neumann") it is that of `grid`, and the mean of rhs is left
    out; "jacobi" with periodic edges sweeps with rhs as it is.

    With return_info the result is (u, info) where info, on every rank, has the iterations done (also
    as "sweeps"), the norm of Jacobi's last update, the 2-norm of rhs - Laplace(u) as "residual",
    and the mean of rhs that was left out.
    """
    check_manager(mpi, "distributed_jacobi_2d")
    with told(mpi, "distributed_jacobi_2d"):
        for name, given, possible in (
            ("method", method, _METHODS),
            ("boundary", boundary, _BOUNDARIES),
        ):
            if not isinstance(given, str) or given not in possible:
                raise cuop.ExecutionError(
                    f"distributed_jacobi_2d: {name} {describe(given)} was given, possible are "
                    f"{', '.join(possible)}"
                )
        has_info = switch(return_info, "distributed_jacobi_2d", "return_info")
    info = {}

    def solve(comm, *inputs):
        u, found = dist.solve_poisson_2d_from_root(
            comm, *inputs, dx, boundary, iterations, tol, method=method
        )
        info.update(
            sweeps=found.sweeps,
            iterations=found.sweeps,
            update_norm=found.update_norm,
            residual=found.residual_norm,
            dropped_mean=found.dropped_mean,
        )
        return u

    solve.__name__ = "jacobi_2d_from_root"
    result = from_root(solve, mpi, {"grid": grid, "rhs": rhs})
    return (result, info) if has_info else result
