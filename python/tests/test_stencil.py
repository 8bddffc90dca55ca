"""Stencils and Jacobi's method against plain sums in double precision and a direct solver."""

import numpy as np
import pytest
import scipy.ndimage
from hypothesis import given, settings
from hypothesis import strategies as st
from raised_errors import each_raises
from random_arrays import random_array

import cuop
from cuop import fft

settings.register_profile("stencil", max_examples=100, deadline=None)
settings.load_profile("stencil")

BOUNDARIES = st.sampled_from(["zero", "periodic"])
TOLERANCE = {"float32": 1e-5, "float64": 1e-13, "complex64": 2e-5, "complex128": 2e-13}


def shifted(grid, down, right, boundary):
    """grid[i + down, j + right] with what lies outside by the boundary's rule."""
    if boundary == "periodic":
        return np.roll(grid, (-down, -right), (0, 1))
    height, width = grid.shape
    wide = np.zeros((height + 2 * abs(down), width + 2 * abs(right)), grid.dtype)
    wide[abs(down) : abs(down) + height, abs(right) : abs(right) + width] = grid
    top, left = abs(down) + down, abs(right) + right
    return wide[top : top + height, left : left + width]


def plain(grid, kernel, boundary):
    dtype = np.complex128 if np.iscomplexobj(grid) else np.float64
    kernel, grid = kernel.astype(dtype), grid.astype(dtype)
    r, s = kernel.shape[0] // 2, kernel.shape[1] // 2
    return sum(
        kernel[a, b] * shifted(grid, a - r, b - s, boundary)
        for a in range(kernel.shape[0])
        for b in range(kernel.shape[1])
    )


@given(st.integers(1, 40), st.integers(1, 70), st.sampled_from([1, 3, 5, 7]),
       st.sampled_from([1, 3, 5, 9]), BOUNDARIES, st.sampled_from(list(TOLERANCE)),
       st.integers(0, 2**32))  # fmt: skip
def test_one_application(height, width, rows, columns, boundary, dtype, seed):
    rng = np.random.default_rng(seed)
    grid = random_array(rng, (height, width), dtype)
    kernel = random_array(rng, (rows, columns), dtype)
    kernel[rng.random(kernel.shape) < 0.3] = 0
    result = np.asarray(cuop.stencil2d(grid, kernel, boundary))
    assert result.dtype == dtype
    tolerance = TOLERANCE[dtype]
    assert np.allclose(result, plain(grid, kernel, boundary), rtol=0, atol=tolerance * kernel.size)
    transposed = np.asarray(cuop.stencil2d(cuop.asarray(grid).T, kernel.T, boundary))
    assert np.allclose(transposed.T, result, rtol=0, atol=tolerance * kernel.size)


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 12), BOUNDARIES,
       st.integers(0, 2**32))  # fmt: skip
def test_iterations(height, width, iterations, boundary, seed):
    rng = np.random.default_rng(seed)
    grid = rng.standard_normal((height, width))
    kernel = rng.random((3, 3)) / 9
    wanted = grid
    for _ in range(iterations):
        wanted = plain(wanted, kernel, boundary)
    assert np.allclose(np.asarray(cuop.stencil2d(grid, kernel, boundary, iterations)), wanted,
                       rtol=0, atol=1e-13)  # fmt: skip


def test_a_real_kernel_works_on_both_parts():
    rng = np.random.default_rng(9)
    grid, kernel = random_array(rng, (17, 23), "complex128"), rng.standard_normal((3, 3))
    got = np.asarray(cuop.stencil2d(grid, kernel, "periodic", 3))
    for part in ("real", "imag"):
        wanted = np.asarray(cuop.stencil2d(getattr(grid, part), kernel, "periodic", 3))
        assert np.array_equal(getattr(got, part), wanted)


def test_agrees_with_scipy():
    rng = np.random.default_rng(1)
    grid, kernel = rng.standard_normal((200, 131)), rng.standard_normal((5, 7))
    for boundary, mode in (("zero", "constant"), ("periodic", "wrap")):
        wanted = scipy.ndimage.correlate(grid, kernel, mode=mode, cval=0.0)
        assert np.allclose(np.asarray(cuop.stencil2d(grid, kernel, boundary)), wanted, atol=1e-12)


def test_laplacians():
    i, j = np.mgrid[:12, :9].astype(np.float64)
    grid = i**2 + 3 * j**2 + i * j
    for kernel in (None, cuop.LAPLACIAN_5PT, cuop.LAPLACIAN_9PT):
        inside = np.asarray(cuop.stencil2d(grid, kernel))[1:-1, 1:-1]
        assert np.allclose(inside, 8.0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_rounds_after_each_application(dtype):
    rng = np.random.default_rng(2)
    grid = cuop.tensor(rng.standard_normal((9, 20)), dtype)
    kernel = cuop.tensor(rng.standard_normal((3, 3)) / 4, dtype)
    single = grid
    for _ in range(3):
        single = cuop.stencil2d(single.to("float32"), kernel.to("float32")).to(dtype)
    result = cuop.stencil2d(grid, kernel, iterations=3)
    assert result.dtype == grid.dtype
    assert np.array_equal(np.asarray(result.to("float32")), np.asarray(single.to("float32")))


def test_nan_reaches_the_neighbours_that_weigh_it():
    grid = np.zeros((7, 7))
    grid[3, 3] = np.nan
    spots = np.isnan(np.asarray(cuop.stencil2d(grid)))
    assert spots.sum() == 5
    assert spots[3, 2:5].all()
    assert spots[2:5, 3].all()


def test_empty_and_out():
    assert cuop.stencil2d(np.zeros((0, 5))).shape == (0, 5)
    assert cuop.stencil2d(np.zeros((5, 0)), iterations=4).shape == (5, 0)
    grid = np.arange(12.0).reshape(3, 4)
    whole = cuop.zeros((4, 3), "float64")
    cuop.stencil2d(grid, iterations=2, out=whole.T)
    assert np.array_equal(np.asarray(whole).T, np.asarray(cuop.stencil2d(grid, iterations=2)))
    with pytest.raises(cuop.ExecutionError, match="shares memory"):
        cuop.stencil2d(whole, out=whole)


@pytest.mark.parametrize("boundary", ["zero", "periodic"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_jacobi_sweeps(boundary, dtype):
    rng = np.random.default_rng(3)
    u, rhs = rng.standard_normal((2, 33, 50))
    wanted = u
    for _ in range(25):
        before = wanted
        around = sum(shifted(wanted, a, b, boundary) for a, b in ((-1, 0), (1, 0), (0, -1), (0, 1)))
        wanted = (around - 0.25 * rhs) / 4
    result, info = cuop.jacobi2d(u.astype(dtype), rhs.astype(dtype), 0.5, boundary, 25, 0.0,
                                 return_info=True)  # fmt: skip
    atol = 1e-5 if dtype == "float32" else 1e-13
    assert np.allclose(np.asarray(result), wanted, rtol=0, atol=atol)
    assert info["sweeps"] == 25
    assert np.isclose(info["update_norm"], np.linalg.norm(wanted - before), rtol=1e-4)
    around = sum(shifted(wanted, a, b, boundary) for a, b in ((-1, 0), (1, 0), (0, -1), (0, 1)))
    residual = np.linalg.norm(rhs - (around - 4 * wanted) / 0.25)
    assert np.isclose(info["residual_norm"], residual, rtol=1e-4)


def test_jacobi_converges_to_the_direct_solution():
    rng = np.random.default_rng(4)
    h, w, dx = 15, 20, 0.1
    rhs = rng.standard_normal((h, w))
    eigen = (
        2 * np.cos(np.pi * np.arange(1, h + 1) / (h + 1))[:, None]
        + 2 * np.cos(np.pi * np.arange(1, w + 1) / (w + 1))
        - 4
    ) / dx**2
    spectrum = np.asarray(fft.dst1(fft.dst1(rhs, 0), 1)) / eigen
    direct = np.asarray(fft.dst1(fft.dst1(spectrum, 0), 1)) / (4 * (h + 1) * (w + 1))
    result, info = cuop.jacobi2d(np.zeros((h, w)), rhs, dx, "zero", 100_000, 1e-12, True)
    assert info["sweeps"] < 100_000
    assert np.allclose(np.asarray(result), direct, rtol=0, atol=1e-9)


def test_jacobi_starts_at_the_solution():
    zero = np.zeros((5, 6), np.float32)
    result, info = cuop.jacobi2d(zero, zero, return_info=True)
    assert info == {"sweeps": 1, "update_norm": 0.0, "residual_norm": 0.0}
    assert not np.asarray(result).any()
    result, info = cuop.jacobi2d(zero + 1, zero, iterations=0, return_info=True)
    assert info["sweeps"] == 0
    assert np.asarray(result).all()


def test_jacobi_in_place():
    rng = np.random.default_rng(5)
    u, rhs = rng.standard_normal((2, 8, 9))
    tensor = cuop.tensor(u)
    cuop.jacobi2d(tensor, rhs, iterations=3, out=tensor)
    assert np.array_equal(np.asarray(tensor), np.asarray(cuop.jacobi2d(u, rhs, iterations=3)))


def test_rows_with_halos():
    rng = np.random.default_rng(6)
    padded = rng.standard_normal((10, 7))
    kernel = rng.standard_normal((3, 3))
    assert np.array_equal(
        np.asarray(cuop.stencil2d_rows(padded, kernel)),
        np.asarray(cuop.stencil2d(padded, kernel))[1:-1],
    )
    rhs = rng.standard_normal((8, 7))
    u, norm = cuop.jacobi2d_rows(padded, rhs, 0.5)
    assert np.isclose(norm, np.sum((np.asarray(u) - padded[1:-1]) ** 2))


G = np.ones((4, 4), np.float32)


test_errors = each_raises(
    (lambda: cuop.stencil2d(np.ones(4)), cuop.ShapeError,
     "stencil2d: the grid must have 2 dimensions, its shape is (4,)"),
    (lambda: cuop.stencil2d(G, np.ones((2, 3))), cuop.ShapeError,
     "the kernel's sizes must be odd, its shape is (2, 3)"),
    (lambda: cuop.stencil2d(G, np.ones(3)), cuop.ShapeError, "the kernel must have 2"),
    (lambda: cuop.stencil2d(G.astype(int)), cuop.DTypeError, "int64 is not supported"),
    (lambda: cuop.stencil2d(G, 1j * np.ones((1, 1))), cuop.DTypeError,
     "stencil2d: the kernel is complex128, the grid is float32"),
    (lambda: cuop.stencil2d_rows(G, 1j * np.ones((1, 1))), cuop.DTypeError,
     "a complex kernel needs a complex grid"),
    (lambda: cuop.stencil2d(G, boundary="none"), cuop.ExecutionError,
     "boundary 'none' is unknown; known are zero, periodic"),
    (lambda: cuop.stencil2d(G, iterations=-1), cuop.ExecutionError, "iterations is -1"),
    (lambda: cuop.stencil2d_rows(G[:1]), cuop.ShapeError, "1 rows do not hold the 2 halo rows"),
    (lambda: cuop.jacobi2d(G, G[:2]), cuop.ShapeError, "do not fit"),
    (lambda: cuop.jacobi2d(G, G.astype(float)), cuop.DTypeError,
     "jacobi2d: u is float32 and rhs is float64"),
    (lambda: cuop.jacobi2d(G.astype(np.float16), G.astype(np.float16)), cuop.DTypeError,
     "float16 is not supported"),
    (lambda: cuop.jacobi2d(G, G, dx=0), cuop.ExecutionError, "dx is 0"),
    (lambda: cuop.jacobi2d(G, G, iterations=-2), cuop.ExecutionError, "must not be negative"),
    (lambda: cuop.jacobi2d(G, G, tol=float("nan")), cuop.ExecutionError, "tolerance (nan)"),
    (lambda: cuop.jacobi2d_rows(G, G), cuop.ShapeError, "2 more rows"),
)  # fmt: skip
