"""Pooling against a definition written here, in float64."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from raised_errors import each_raises
from raised_errors import zeros as z
from random_arrays import INTEGERS, random_array

import cuop

SETTINGS = settings(max_examples=80, deadline=None)
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-6, "float64": 1e-14}
MAX = {1: cuop.max_pool1d, 2: cuop.max_pool2d, 3: cuop.max_pool3d}
AVG = {1: cuop.avg_pool1d, 2: cuop.avg_pool2d, 3: cuop.avg_pool3d}
DTYPES = st.sampled_from(list(TOLERANCE))


def windows(x, kernel, stride, padding, fill):
    """Every window of the padded image, flattened into the last axis."""
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)], constant_values=fill)
    counts = [(n - k) // s + 1 for n, k, s in zip(x.shape[2:], kernel, stride, strict=True)]
    taps = [
        x[
            (
                ...,
                *(
                    slice(t, t + (c - 1) * s + 1, s)
                    for t, c, s in zip(tap, counts, stride, strict=True)
                ),
            )
        ]
        for tap in itertools.product(*(range(k) for k in kernel))
    ]
    return np.stack(taps, axis=-1)


@st.composite
def geometries(draw):
    spatial = draw(st.sampled_from([1, 2, 2, 3]))
    most = {1: 1200, 2: 40, 3: 8}[spatial]
    size = tuple(draw(st.integers(1, most)) for _ in range(spatial))
    kernel = tuple(draw(st.integers(1, 5)) for _ in range(spatial))
    stride = tuple(draw(st.integers(1, 4)) for _ in range(spatial))
    padding = tuple(draw(st.integers(0, k // 2)) for k in kernel)
    assume(all(n + 2 * p >= k for n, k, p in zip(size, kernel, padding, strict=True)))
    return size, kernel, stride, padding


def random_tensor(rng, shape, dtype, view):
    tensor = cuop.tensor(rng.standard_normal(shape)).to(dtype)
    if view:
        tensor = cuop.swapaxes(cuop.swapaxes(tensor, 0, 1).clone(), 0, 1)
    return tensor, tensor.to("float64").to_numpy()


@SETTINGS
@given(
    geometry=geometries(),
    dtype=DTYPES,
    nan=st.booleans(),
    view=st.booleans(),
    seed=st.integers(0, 999),
)
def test_max(geometry, dtype, nan, view, seed):
    size, kernel, stride, padding = geometry
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((2, 3, *size))
    if nan:
        values[rng.random(values.shape) < 0.1] = np.nan
        values[rng.random(values.shape) < 0.1] = -np.inf
    x = cuop.tensor(values).to(dtype)
    if view:
        x = cuop.swapaxes(cuop.swapaxes(x, 0, 1).clone(), 0, 1)
    y = MAX[len(size)](x, kernel, stride, padding)
    expected = windows(x.to("float64").to_numpy(), kernel, stride, padding, -np.inf).max(-1)
    assert str(y.dtype).endswith(dtype)
    np.testing.assert_array_equal(y.to("float64").to_numpy(), expected)


def random_integers(rng, shape, dtype, view):
    """A tensor and its values, of the whole range of the dtype."""
    values = random_array(rng, shape, dtype)
    if view:
        return cuop.swapaxes(cuop.tensor(np.swapaxes(values, 0, 1)), 0, 1), values
    return cuop.tensor(values), values


@SETTINGS
@given(
    geometry=geometries(),
    dtype=st.sampled_from(INTEGERS),
    include=st.booleans(),
    view=st.booleans(),
    seed=st.integers(0, 999),
)
def test_integers(geometry, dtype, include, view, seed):
    size, kernel, stride, padding = geometry
    x, values = random_integers(np.random.default_rng(seed), (2, 3, *size), dtype, view)
    largest = MAX[len(size)](x, kernel, stride, padding)
    assert str(largest.dtype).endswith(dtype)
    lowest = np.iinfo(dtype).min
    expected = windows(values, kernel, stride, padding, lowest).max(-1)
    np.testing.assert_array_equal(largest.to_numpy(), expected)
    # Means are computed in float64, as those of reductions.
    mean = AVG[len(size)](x, kernel, stride, padding, count_include_pad=include).to_numpy()
    assert mean.dtype == np.float64
    wide = values.astype(np.float64)
    counts = windows(np.ones_like(wide), kernel, stride, padding, 0).sum(-1)
    sums = windows(wide, kernel, stride, padding, 0).sum(-1)
    tolerance = 1e-13 * np.abs(wide).max()
    expected = sums / (np.prod(kernel) if include else counts)
    np.testing.assert_allclose(mean, expected, rtol=0, atol=tolerance)
    axes = tuple(range(2, values.ndim))
    got = cuop.global_max_pool(x).to_numpy()
    np.testing.assert_array_equal(got, values.max(axes, keepdims=True))
    got = cuop.global_avg_pool(x).to_numpy()
    np.testing.assert_allclose(got, wide.mean(axes, keepdims=True), rtol=0, atol=tolerance)


@SETTINGS
@given(
    geometry=geometries(),
    dtype=DTYPES,
    include=st.booleans(),
    view=st.booleans(),
    seed=st.integers(0, 999),
)
def test_avg(geometry, dtype, include, view, seed):
    size, kernel, stride, padding = geometry
    x, values = random_tensor(np.random.default_rng(seed), (3, 2, *size), dtype, view)
    y = AVG[len(size)](x, kernel, stride, padding, count_include_pad=include)
    sums = windows(values, kernel, stride, padding, 0).sum(-1)
    counts = windows(np.ones_like(values), kernel, stride, padding, 0).sum(-1)
    expected = sums / (np.prod(kernel) if include else counts)
    got = y.to("float64").to_numpy()
    assert got.shape == expected.shape
    assert np.all(np.abs(got - expected) <= TOLERANCE[dtype] * (1 + np.abs(values).max()))


@SETTINGS
@given(
    shape=st.sampled_from(
        [(2, 3, 1), (1, 2, 31), (2, 3, 7, 9), (3, 1, 4, 5, 6), (2, 2, 1000), (0, 2, 3)]
    ),
    dtype=DTYPES,
    flat=st.booleans(),
    view=st.booleans(),
    seed=st.integers(0, 999),
)
def test_global(shape, dtype, flat, view, seed):
    x, values = random_tensor(np.random.default_rng(seed), shape, dtype, view)
    out = cuop.zeros(shape[:2], dtype=dtype) if flat else None
    axes = tuple(range(2, len(shape)))
    largest = cuop.global_max_pool(x, out=out).to("float64").to_numpy()
    np.testing.assert_array_equal(largest, values.max(axes, keepdims=not flat))
    mean = cuop.global_avg_pool(x, out=out).to("float64").to_numpy()
    expected = values.mean(axes, keepdims=not flat)
    assert mean.shape == expected.shape
    assert np.all(np.abs(mean - expected) <= TOLERANCE[dtype])


def test_global_spreads_nan_from_any_place():
    for place in range(0, 100, 7):
        x = np.zeros((1, 1, 100), np.float32)
        x[0, 0, place] = np.nan
        assert np.isnan(cuop.global_max_pool(x).to_numpy()).all()
        assert np.isnan(cuop.global_avg_pool(x).to_numpy()).all()


def test_long_means_are_accumulated_in_double():
    x = np.full((1, 1, 1 << 22), 0.1, np.float32)
    assert cuop.global_avg_pool(x).to_numpy().item() == np.float32(0.1)


def test_strided_output_and_defaults():
    x = np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4)
    base = np.zeros((1, 2, 4, 4), np.float32)
    out = cuop.from_dlpack(base[:, :, ::2, ::2])
    cuop.max_pool2d(x, 2, out=out)
    np.testing.assert_array_equal(base[0, :, ::2, ::2], x[0, :, 1::2, 1::2])
    assert base.sum() == x[0, :, 1::2, 1::2].sum()


test_errors = each_raises(
    (lambda: cuop.max_pool2d(z(2, 3, 4), 2), cuop.ShapeError, "max_pool2d: x has shape"),
    (lambda: cuop.avg_pool2d(z(1, 1, 4, 0), 1), cuop.ShapeError, "must not be empty"),
    (lambda: cuop.max_pool2d(z(1, 1, 4, 4), 5), cuop.ShapeError, "needs at least 5"),
    (lambda: cuop.max_pool2d(z(1, 1, 4, 4), 0), cuop.ShapeError, "kernel is .* at least 1"),
    (lambda: cuop.max_pool2d(z(1, 1, 4, 4), (1, 2, 3)), cuop.ShapeError, "1 or 2 values"),
    (lambda: cuop.max_pool2d(z(1, 1, 4, 4), 2, 0), cuop.ShapeError, "stride is"),
    (lambda: cuop.max_pool2d(z(1, 1, 4, 4), 2, 1, 2), cuop.ShapeError, "half the kernel"),
    (lambda: cuop.max_pool2d(z(1, 1, 4, 4), 2, 1, -1), cuop.ShapeError, "padding is"),
    (lambda: cuop.max_pool2d(z(1, 1, 4, 4, dtype="bool"), 2), cuop.DTypeError, "dtype bool"),
    (
        lambda: cuop.avg_pool2d(z(1, 1, 4, 4, dtype="complex64"), 2),
        cuop.DTypeError,
        "avg_pool2d: dtype complex64 .* supported are int8",
    ),
    (
        lambda: cuop.avg_pool2d(z(1, 1, 4, 4, dtype="int8"), 2, out=z(1, 1, 2, 2)),
        cuop.DTypeError,
        "float64",
    ),
    (
        lambda: cuop.max_pool2d(z(1, 1, 4, 4), 2**40, padding=2**39),
        cuop.ShapeError,
        "kernel is .* at most 2147483647",
    ),
    (lambda: cuop.global_avg_pool(z(2, 3)), cuop.ShapeError, "at least 3 dimensions"),
    (lambda: cuop.global_max_pool(z(2, 3, 0)), cuop.ShapeError, "must not be empty"),
    (
        lambda: cuop.global_max_pool(z(2, 3, 4), out=z(2, 2)),
        cuop.ShapeError,
        "output has shape",
    ),
    are_patterns=True,
)


def test_output_may_not_share_memory_with_the_input():
    x = z(1, 1, 4, 4)
    with pytest.raises(cuop.ExecutionError, match="shares memory with x"):
        cuop.max_pool2d(x, 1, out=x)


def test_global_pools_of_images():
    x = np.random.default_rng(3).random((2, 3, 4, 5))
    np.testing.assert_allclose(np.asarray(cuop.global_max_pool2d(x)), x.max((2, 3), keepdims=True))
    out = cuop.empty((2, 3), "float64")
    assert cuop.global_avg_pool2d(x, out=out) is out
    np.testing.assert_allclose(np.asarray(out), x.mean((2, 3)))
    with pytest.raises(cuop.ShapeError, match="global_max_pool2d: x has shape .* needs 4 dim"):
        cuop.global_max_pool2d(x[0])
