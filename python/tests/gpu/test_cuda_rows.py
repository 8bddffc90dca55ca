"""Softmax, normalisation, pooling and stencils on a GPU, beside NumPy and the CPU's tensors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cuop

LENGTHS = st.sampled_from([1, 2, 7, 64, 127, 1000, 4096, 10007, 100000])


def pair(shape, dtype, seed):
    """The same numbers as an array and on the GPU."""
    array = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    return array, cuop.tensor(array, device="cuda")


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), LENGTHS, st.sampled_from(["float32", "float64"]), st.integers(0, 99))
def test_softmax_is_numpys(rows, length, dtype, seed):
    array, there = pair((rows, length), dtype, seed)
    wide = array.astype(np.float64)
    power = np.exp(wide - wide.max(axis=1, keepdims=True))
    expected = power / power.sum(axis=1, keepdims=True)
    rtol = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(cuop.softmax(there).to_numpy(), expected, rtol=rtol)
    logs = cuop.log_softmax(there).to_numpy()
    np.testing.assert_allclose(logs, np.log(expected), rtol=rtol, atol=rtol)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), LENGTHS, st.sampled_from(["float16", "float32", "float64"]))
def test_norms_are_numpys(rows, length, dtype):
    array, there = pair((rows, length), dtype, rows)
    gamma, factor = pair((length,), dtype, 1)
    wide = array.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    layer = centred / np.sqrt(wide.var(axis=1, keepdims=True) + 1e-5) * gamma
    rms = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5) * gamma
    tolerance = {"float16": 4e-3, "float32": 1e-5, "float64": 1e-12}[dtype]
    for given_, expected in (
        (cuop.layer_norm(there, factor), layer),
        (cuop.rms_norm(there, factor), rms),
    ):
        np.testing.assert_allclose(given_.to_numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16", "float16", "float32", "float64"])
@pytest.mark.parametrize("stride", [1, 2, 5])
def test_pools_are_the_cpus(dtype, stride):
    array = (np.random.default_rng(0).random((2, 3, 17, 29)) * 50).astype(dtype)
    here, there = cuop.tensor(array), cuop.tensor(array, device="cuda")
    best = cuop.max_pool2d(there, kernel=3, stride=stride)
    np.testing.assert_array_equal(
        best.to_numpy(), cuop.max_pool2d(here, kernel=3, stride=stride).to_numpy()
    )
    mean = cuop.avg_pool2d(there, kernel=3, stride=stride, padding=1).to_numpy()
    expected = cuop.avg_pool2d(here, kernel=3, stride=stride, padding=1).to_numpy()
    np.testing.assert_allclose(mean, expected, rtol=2e-3 if dtype == "float16" else 1e-5)
    np.testing.assert_array_equal(
        cuop.global_max_pool(there).to_numpy(), array.max(axis=(2, 3), keepdims=True)
    )


@pytest.mark.parametrize("boundary", ["zero", "periodic"])
@pytest.mark.parametrize("shape", [(1, 1), (31, 7), (64, 129)])
def test_stencils_are_the_cpus_bits(shape, boundary):
    array, there = pair(shape, "float32", 3)
    kernel = np.random.default_rng(1).standard_normal((3, 5)).astype(np.float32)
    mine = cuop.stencil2d(there, cuop.tensor(kernel), boundary=boundary, iterations=3)
    expected = cuop.stencil2d(
        cuop.tensor(array), cuop.tensor(kernel), boundary=boundary, iterations=3
    )
    np.testing.assert_array_equal(mine.to_numpy(), expected.to_numpy())


def test_rows_of_nan_and_infinity():
    array = np.array([[1, np.nan, 2], [np.inf, 1, 2], [-np.inf] * 3, [-np.inf, 0, 0]], np.float32)
    given_ = cuop.softmax(cuop.tensor(array, device="cuda")).to_numpy()
    assert np.isnan(given_[:3]).all()
    np.testing.assert_array_equal(given_[3], [0, 0.5, 0.5])
