"""Solvers of the Poisson equation over ranks, against SciPy's sparse solver."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import cuop
from cuop import dist
from distributed_gpu import MPIError, MPIManager
from distributed_gpu.algorithms.stencil import distributed_jacobi_2d

BOUNDARIES = ["zero", "periodic", "dirichlet", "neumann"]
METHODS = ["rb-sor", "cg", "multigrid", "direct"]


def second_difference(n, boundary):
    matrix = sp.diags([1.0, -2.0, 1.0], [-1, 0, 1], (n, n)).tolil()
    if boundary == "periodic":
        matrix[0, n - 1] += 1
        matrix[n - 1, 0] += 1
    elif boundary == "neumann":
        matrix[0, 0] += 1
        matrix[n - 1, n - 1] += 1
    return matrix.tocsc()


def laplacian(shape, boundary, dx):
    down, across = (second_difference(n, boundary) for n in shape)
    return (sp.kron(down, sp.eye(shape[1])) + sp.kron(sp.eye(shape[0]), across)) / dx**2


def solved(grid, rhs, boundary, dx):
    """u by SciPy's direct solver."""
    if boundary == "dirichlet":
        u = grid.copy()
        if min(grid.shape) > 2:
            frame = grid.copy()
            frame[1:-1, 1:-1] = 0
            beyond = (laplacian(grid.shape, "zero", dx) @ frame.ravel()).reshape(grid.shape)
            within = (rhs - beyond)[1:-1, 1:-1]
            u[1:-1, 1:-1] = solved(within, within, "zero", dx)
        return u
    matrix = laplacian(grid.shape, boundary, dx)
    if boundary == "zero":
        return sp.linalg.spsolve(matrix.tocsc(), rhs.ravel()).reshape(grid.shape)
    # One more unknown takes up the mean of rhs, one more equation gives that of u.
    ones = np.ones((grid.size, 1))
    bordered = sp.bmat([[matrix, ones], [ones.T, None]]).tocsc()
    u = sp.linalg.spsolve(bordered, np.append(rhs.ravel(), grid.sum()))
    return u[:-1].reshape(grid.shape)


def from_root(ranks, grid, rhs, *arguments, **options):
    def work(comm):
        mine = [grid, rhs] if comm.rank == 0 else [None, None]
        return distributed_jacobi_2d(
            *mine, MPIManager(), None, *arguments, return_info=True, **options
        )

    results = dist.run_ranks(work, ranks)
    assert all(u is None and info == results[0][1] for u, info in results[1:])
    return results[0]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([1, 2, 3, 4, 7]),
    st.sampled_from([1, 2, 3, 5, 8, 13, 24]),
    st.sampled_from([1, 2, 4, 7, 16, 29]),
    st.sampled_from(BOUNDARIES),
    st.sampled_from(METHODS),
    st.integers(0, 2**32),
)
def test_every_method_gives_scipys_solution(ranks, rows, columns, boundary, method, seed):
    grid, rhs = np.random.default_rng(seed).standard_normal((2, rows, columns))
    u, info = from_root(ranks, grid, rhs, 0.5, boundary, 3000, 1e-12, method=method)
    expected = solved(grid, rhs, boundary, 0.5)
    np.testing.assert_allclose(u, expected, atol=1e-8 * max(1.0, abs(expected).max()))
    if boundary in ("periodic", "neumann"):
        np.testing.assert_allclose(info["dropped_mean"], rhs.mean(), atol=1e-14)
    if boundary != "dirichlet":
        rest = rhs.ravel() - laplacian(grid.shape, boundary, 0.5) @ u.ravel()
        np.testing.assert_allclose(info["residual"], np.linalg.norm(rest), atol=1e-9)
    assert info["iterations"] == info["sweeps"] <= 3000


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_float32(boundary, method):
    grid, rhs = np.random.default_rng(2).standard_normal((2, 19, 14)).astype(np.float32)
    u, info = from_root(2, grid, rhs, 1.0, boundary, 2000, 1e-6, method=method)
    assert u.dtype == np.float32
    expected = solved(grid.astype(float), rhs.astype(float), boundary, 1.0)
    np.testing.assert_allclose(u, expected, atol=3e-5 * max(1.0, abs(expected).max()))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("boundary", ["zero", "periodic", "neumann"])
@pytest.mark.parametrize("shape", [(7, 1), (5, 16), (33, 16)], ids=str)
def test_cg_ends_where_rounding_is_all_that_is_left(shape, boundary, dtype):
    """From a start beside which rhs is next to nothing, no residual comes near the tolerance."""
    rng = np.random.default_rng(6)
    grid = rng.standard_normal(shape).astype(dtype)
    rhs = (1e-6 * rng.standard_normal(shape)).astype(dtype)
    u, info = from_root(2, grid, rhs, 0.1, boundary, 5000, 1e-10, method="cg")
    expected = solved(grid.astype(float), rhs.astype(float), boundary, 0.1)
    rounding = np.finfo(dtype).eps * abs(grid).max()
    np.testing.assert_allclose(u, expected, atol=1e3 * rounding)
    assert info["iterations"] < 1000


def test_a_better_start_takes_fewer_cycles():
    grid, rhs = np.zeros((40, 40)), np.random.default_rng(3).standard_normal((40, 40))
    u, cold = from_root(1, grid, rhs, tol=1e-8, method="multigrid")
    _, warm = from_root(1, u * (1 + 1e-5), rhs, tol=1e-8, method="multigrid")
    assert warm["iterations"] < cold["iterations"] < 12
    _, again = from_root(1, u, rhs, tol=1e-8, method="multigrid")
    assert again["iterations"] == 0


def test_jacobi_with_edges_without_flux_comes_to_the_same():
    grid, rhs = np.random.default_rng(4).standard_normal((2, 6, 5))
    u, info = from_root(3, grid, rhs, 1.0, "neumann", 3000, 1e-11)
    np.testing.assert_allclose(u, solved(grid, rhs, "neumann", 1.0), atol=1e-9)
    assert 10 < info["sweeps"] < 3000
    assert info["update_norm"] < 1e-11


def test_parts_stay_parts():
    grid, rhs = np.random.default_rng(5).standard_normal((2, 12, 9))

    def work(comm):
        rows = dist.Sharding(dist.Mesh.line(comm.size), dist.P("r"))
        x, f = (dist.DistTensor.from_root(comm, a if comm.rank == 0 else None) for a in (grid, rhs))
        with dist.strict():
            u, info = dist.solve_poisson_2d(
                x.redistribute(rows), f.redistribute(rows), boundary="dirichlet", tol=1e-11
            )
        assert u.local.shape[0] == 12 // comm.size
        return np.asarray(u.gather_all()), info.sweeps

    for u, cycles in dist.run_ranks(work, 3):
        np.testing.assert_allclose(u, solved(grid, rhs, "dirichlet", 1.0), atol=1e-8)
        assert 3 < cycles < 13


def test_what_is_wrong_is_said():
    grid = np.ones((3, 3))
    with pytest.raises(MPIError, match="boundary 'open' was given, possible are zero, periodic"):
        from_root(1, grid, grid, boundary="open")
    with pytest.raises(cuop.ExecutionError, match="method 'sor' is unknown; known are jacobi"):
        dist.run_ranks(
            lambda comm: dist.solve_poisson_2d_from_root(comm, grid, grid, method="sor"), 1
        )
    with pytest.raises(MPIError, match=r"grid \(3, 3\) and rhs \(3, 2\) were given"):
        from_root(2, grid, grid[:, :2], method="multigrid", boundary="dirichlet")
