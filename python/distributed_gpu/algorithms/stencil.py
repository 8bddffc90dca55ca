"""Stencils and the Poisson equation on grids that lie on rank 0.

Every rank makes the same call; arrays are given on rank 0 and are None elsewhere, the result comes
back on rank 0 as the kind of the grid. Errors raise MPIError on every rank.
"""

import numpy as np

import cuop
from cuop import dist
from cuop._arguments import describe, truth
from distributed_gpu._call import check_manager, from_root, told

__all__ = [
    "DEFAULT_LAPLACIAN_5PT",
    "DEFAULT_LAPLACIAN_9PT",
    "distributed_jacobi_2d",
    "distributed_stencil_2d",
]

DEFAULT_LAPLACIAN_5PT = np.array([[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]])
DEFAULT_LAPLACIAN_9PT = np.array([[1.0, 4.0, 1.0], [4.0, -20.0, 4.0], [1.0, 4.0, 1.0]]) / 6.0

_SOLVERS = {"jacobi": dist.jacobi_2d_from_root, "direct": dist.poisson_2d_from_root}


def distributed_stencil_2d(
    grid, mpi, distributor, stencil_kernel=None, boundary="zero", iterations=1
):
    """The kernel (default the 5-point Laplacian) applied `iterations` times to a grid [h, w].

    Any kernel of odd sizes, read on rank 0; boundary "zero" or "periodic".
    """
    kernel = DEFAULT_LAPLACIAN_5PT if stencil_kernel is None else stencil_kernel
    return from_root(dist.stencil_2d_from_root, mpi, [grid, kernel], boundary, iterations)


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
    sweep's update over the whole grid is below `tol`. method "direct": by sine (zero boundary) or
    Fourier transforms (periodic), to rounding. With return_info the result is (u, info) where info,
    on every rank, has the sweeps done, the norm of the last update and the true residual.
    """
    check_manager(mpi, "distributed_jacobi_2d")
    with told(mpi, "distributed_jacobi_2d"):
        if not isinstance(method, str) or method not in _SOLVERS:
            raise cuop.ExecutionError(
                f"distributed_jacobi_2d: method {describe(method)} was given, possible are "
                f"{sorted(_SOLVERS)}"
            )
        has_info = truth(return_info, "distributed_jacobi_2d", "return_info")
    info = {}

    def solve(comm, *inputs):
        u, found = _SOLVERS[method](comm, *inputs, dx, boundary, iterations, tol)
        info.update(
            sweeps=found.sweeps, update_norm=found.update_norm, residual=found.residual_norm
        )
        return u

    solve.__name__ = "jacobi_2d_from_root"
    result = from_root(solve, mpi, [grid, rhs])
    return (result, info) if has_info else result
