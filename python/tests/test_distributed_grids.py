"""Stencils and the Poisson equation of distributed_gpu, against SciPy and the definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

import cuop
from cuop import dist, executor
from distributed_gpu import MPIError, MPIManager
from distributed_gpu.algorithms.stencil import (
    DEFAULT_LAPLACIAN_5PT,
    DEFAULT_LAPLACIAN_9PT,
    distributed_jacobi_2d,
    distributed_stencil_2d,
)

RANKS = [1, 2, 3, 4, 7]
SIZES = st.sampled_from([1, 2, 3, 5, 8, 13])
MODES = {"zero": "constant", "periodic": "wrap"}


def rooted(ranks, function, *arrays, **options):
    """The result of rank 0; other ranks must answer None."""

    def work(comm):
        mine = [array if comm.rank == 0 else None for array in arrays]
        return function(*mine, MPIManager(), None, **options)

    results = dist.run_ranks(work, ranks)
    if not options.get("return_info"):
        assert all(result is None for result in results[1:])
        return results[0]
    assert all(u is None for u, _ in results[1:])
    assert all(info == results[0][1] for _, info in results)
    return results[0]


def swept(grid, kernel, boundary, iterations):
    for _ in range(iterations):
        grid = ndimage.correlate(grid, kernel, mode=MODES[boundary])
    return grid


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("boundary", MODES)
def test_stencils_of_complex_grids_are_those_of_one_tensor(ranks, boundary):
    rng = np.random.default_rng(8)
    for dtype in ["complex64", "complex128"]:
        for height, width in [(1, 1), (7, 4), (13, 8)]:
            grid = (rng.random((height, width)) + 1j * rng.random((height, width))).astype(dtype)
            kernel = (rng.random((3, 5)) - 1j * rng.random((3, 5))).astype(dtype)
            for weights in [kernel, kernel.real]:
                expected = np.asarray(cuop.stencil2d(grid, weights, boundary, 4))

                def work(comm, grid=grid, weights=weights):
                    line = dist.Mesh.line(comm.size)
                    shares = [dist.P("r"), dist.P(None, "r")]
                    mine = [grid, weights] if comm.rank == 0 else [None, None]
                    x, k = (dist.DistTensor.from_root(comm, array) for array in mine)
                    split = [x.redistribute(dist.Sharding(line, share)) for share in shares]
                    results = [dist.stencil_2d(part, k, boundary, 4) for part in split]
                    tiled, _ = executor.stencil_2d(comm, *mine, boundary, 4, memory_limit=30_000)
                    return [part.gather() for part in results] + [tiled]

                for result in dist.run_ranks(work, ranks)[0]:
                    assert result.dtype == dtype
                    np.testing.assert_allclose(result, expected, rtol=1e-4)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(RANKS),
    SIZES,
    SIZES,
    st.sampled_from([(1, 1), (3, 3), (5, 3), (1, 7), (9, 1)]),
    st.sampled_from(list(MODES)),
    st.integers(0, 4),
)
def test_stencils_of_any_size(ranks, rows, columns, kernel_shape, boundary, iterations):
    rng = np.random.default_rng(rows * columns)
    grid, kernel = rng.standard_normal((rows, columns)), rng.standard_normal(kernel_shape) / 4
    result = rooted(
        ranks,
        distributed_stencil_2d,
        grid,
        stencil_kernel=kernel,
        boundary=boundary,
        iterations=iterations,
    )
    np.testing.assert_allclose(result, swept(grid, kernel, boundary, iterations), atol=1e-11)


def test_default_kernels():
    grid = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32)
    result = rooted(3, distributed_stencil_2d, grid)
    assert result.dtype == np.float32
    expected = swept(grid.astype(float), DEFAULT_LAPLACIAN_5PT, "zero", 1)
    np.testing.assert_allclose(result, expected, atol=1e-5)
    np.testing.assert_allclose(DEFAULT_LAPLACIAN_9PT * 6, [[1, 4, 1], [4, -20, 4], [1, 4, 1]])


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(RANKS),
    st.sampled_from(["row", "column", "block_2d"]),
    SIZES,
    st.sampled_from([1, 2, 7, 19]),
    st.sampled_from([(1, 1), (3, 3), (5, 3), (1, 7), (9, 1)]),
    st.sampled_from(list(MODES)),
    st.integers(0, 6),
)
def test_stencils_in_blocks_of_any_cut(
    ranks, strategy, rows, columns, kernel_shape, boundary, iterations
):
    rng = np.random.default_rng(rows * columns)
    grid, kernel = rng.standard_normal((rows, columns)), rng.standard_normal(kernel_shape) / 4

    def work(comm):
        mine = (grid, kernel) if comm.rank == 0 else (None, None)
        return dist.stencil_2d_from_root(comm, *mine, boundary, iterations, strategy=strategy)

    result = np.asarray(dist.run_ranks(work, ranks)[0])
    np.testing.assert_allclose(result, swept(grid, kernel, boundary, iterations), atol=1e-11)


@pytest.mark.parametrize("strategy", ["row", "column", "block_2d"])
@pytest.mark.parametrize("boundary", list(MODES))
def test_jacobi_in_blocks_stays_in_them(strategy, boundary):
    u, rhs = np.random.default_rng(1).standard_normal((2, 9, 14))

    def work(comm):
        x, f = (dist.DistTensor.from_root(comm, a if comm.rank == 0 else None) for a in (u, rhs))
        solved, info = dist.jacobi_2d(x, f, 0.5, boundary, 7, 0.0, strategy=strategy)
        again, more = dist.jacobi_2d(solved, f, 0.5, boundary, 5, 0.0, strategy=strategy)
        split = [low != high for low, high in zip(solved.shape, solved.local.shape, strict=True)]
        assert split == [strategy != "column", strategy != "row"]
        return np.asarray(again.gather_all()), info.sweeps + more.sweeps, more.update_norm

    around = DEFAULT_LAPLACIAN_5PT * (DEFAULT_LAPLACIAN_5PT > 0)
    expected = u
    for _ in range(12):
        before, expected = expected, (swept(expected, around, boundary, 1) - 0.25 * rhs) / 4
    for result, sweeps, norm in dist.run_ranks(work, 4):
        np.testing.assert_allclose(result, expected, atol=1e-13)
        assert sweeps == 12
        np.testing.assert_allclose(norm, np.linalg.norm(expected - before))


def laplacian(u, boundary, dx):
    return swept(u, DEFAULT_LAPLACIAN_5PT, boundary, 1) / dx**2


def solved(ranks, u, rhs, boundary, **options):
    return rooted(
        ranks,
        distributed_jacobi_2d,
        u,
        rhs,
        dx=0.5,
        boundary=boundary,
        return_info=True,
        **options,
    )


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("boundary", list(MODES))
def test_jacobi_follows_the_definition(ranks, boundary):
    rng = np.random.default_rng(1)
    u, rhs = rng.standard_normal((2, 7, 9))
    rhs -= rhs.mean()
    result, info = solved(ranks, u, rhs, boundary, iterations=12, tol=0.0)
    around = DEFAULT_LAPLACIAN_5PT * (DEFAULT_LAPLACIAN_5PT > 0)
    for _ in range(12):
        before, u = u, (swept(u, around, boundary, 1) - 0.25 * rhs) / 4
    np.testing.assert_allclose(result, u, atol=1e-13)
    assert info["sweeps"] == 12
    np.testing.assert_allclose(info["update_norm"], np.linalg.norm(u - before))
    residual = np.linalg.norm(rhs - laplacian(u, boundary, 0.5))
    np.testing.assert_allclose(info["residual"], residual)


def test_jacobi_stops_early_at_the_same_sweep_on_any_number_of_ranks():
    u, rhs = np.zeros((8, 8)), np.ones((8, 8))
    found = []
    for ranks in RANKS:
        result, info = rooted(
            ranks, distributed_jacobi_2d, u, rhs, tol=1e-3, iterations=5000, return_info=True
        )
        found.append((info["sweeps"], result.tobytes()))
    assert 10 < found[0][0] < 5000
    assert all(each == found[0] for each in found)
    assert info["update_norm"] < 1e-3


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("boundary", list(MODES))
@pytest.mark.parametrize("shape", [(1, 1), (16, 12), (5, 7), (2, 9)])
def test_the_direct_method_inverts_the_laplacian(ranks, boundary, shape):
    u = np.random.default_rng(2).standard_normal(shape)
    rhs = laplacian(u, boundary, 0.5)
    result, info = solved(ranks, u, rhs, boundary, method="direct")
    np.testing.assert_allclose(result, u, atol=1e-11)
    assert info["residual"] < 1e-9


def test_errors():
    grid = np.ones((4, 4))

    def failure(function, *args, **options):
        def work(comm):
            with pytest.raises(MPIError) as caught:
                function(*args, MPIManager(), None, **options)
            return str(caught.value)

        return dist.run_ranks(work, 2)

    for text in failure(distributed_stencil_2d, grid, stencil_kernel=np.ones((2, 3))):
        assert "the kernel has shape (2, 3)" in text
    for text in failure(distributed_stencil_2d, grid, stencil_kernel=np.ones((3, 3)) * 1j):
        assert "a complex kernel needs a complex grid" in text
    for text in failure(distributed_stencil_2d, grid, boundary="open"):
        assert "open" in text
    for text in failure(distributed_jacobi_2d, grid, grid[:2]):
        assert "grid (4, 4) and rhs (2, 4)" in text
    for text in failure(distributed_jacobi_2d, grid.astype(int), grid):
        assert "float32 or float64" in text
    with pytest.raises(MPIError, match="possible are"):
        distributed_jacobi_2d(grid, grid, MPIManager(), None, method="magic")
