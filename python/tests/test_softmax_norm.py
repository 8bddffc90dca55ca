"""softmax, log_softmax and the normalisations against NumPy and SciPy in float64 and beyond."""

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

import cuop

SETTINGS = settings(max_examples=60, deadline=None)
TOLERANCE = {"float16": 4e-3, "float32": 4e-6, "float64": 4e-14}
SIZES = st.sampled_from([1, 2, 3, 7, 17, 64, 131])


@st.composite
def arrays(draw, min_dims=1):
    """A floating array, perhaps with unusual strides."""
    shape = tuple(draw(st.lists(SIZES, min_size=min_dims, max_size=3)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = rng.standard_normal(shape) * draw(st.sampled_from([1.0, 8.0]))
    array = values.astype(draw(st.sampled_from(list(TOLERANCE))))
    return {"plain": array, "transposed": array.T, "reversed": array[::-1]}[
        draw(st.sampled_from(["plain", "transposed", "reversed"]))
    ]


def close(ours, expected, like, scale=1.0):
    got = ours.to_numpy()
    assert got.dtype == like.dtype
    tolerance = TOLERANCE[str(like.dtype)] * scale
    np.testing.assert_allclose(got.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


@SETTINGS
@given(arrays(), st.data())
def test_softmax(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    wide = x.astype(np.float64)
    close(cuop.softmax(x, axis), scipy.special.softmax(wide, axis), x)
    close(cuop.log_softmax(x, axis), scipy.special.log_softmax(wide, axis), x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_of_special_values(dtype, axis):
    inf, nan = np.inf, np.nan
    rows = [[1, -inf, 2, 0], [-inf] * 4, [inf, 1, 2, 3], [nan, 1, -inf, 0], [-900, 0, 900, 1]]
    x = np.tile(np.array(rows, dtype), (1, 9))
    with np.errstate(invalid="ignore"):
        expected = scipy.special.softmax(x.astype(np.float64), 1)
    expected[2] = nan  # +inf: the row has no meaning
    if axis == 0:
        x, expected = x.T.copy(), expected.T
    np.testing.assert_allclose(cuop.softmax(x, axis).to_numpy(), expected, rtol=1e-6, atol=1e-40)
    log = cuop.log_softmax(x, axis).to_numpy()
    np.testing.assert_array_equal(np.isnan(log), np.isnan(expected))
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(np.isneginf(log), np.isneginf(x) & ~np.isnan(expected))


def test_softmax_bfloat16_and_empty():
    x = cuop.tensor(np.linspace(-3, 3, 50, dtype=np.float32)).to("bfloat16")
    y = cuop.softmax(x)
    assert y.dtype == "bfloat16"
    expected = scipy.special.softmax(x.to("float64").to_numpy())
    np.testing.assert_allclose(y.to("float64").to_numpy(), expected, rtol=5e-3)
    assert cuop.softmax(cuop.empty((0, 3))).shape == (0, 3)
    assert cuop.softmax(cuop.empty((3, 0))).shape == (3, 0)


def normalized(x, axes, eps):
    x = x.astype(np.longdouble)
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


@SETTINGS
@given(arrays(min_dims=2), st.data())
def test_layer_norm(x, data):
    rng = np.random.default_rng(1)
    trailing = data.draw(st.integers(1, x.ndim))
    shape = x.shape[x.ndim - trailing :]
    gamma, beta = (rng.standard_normal(shape).astype(x.dtype) for _ in range(2))
    axes = tuple(range(x.ndim - trailing, x.ndim))
    expected = normalized(x, axes, 1e-3) * gamma + beta
    close(cuop.layer_norm(x, gamma, beta, eps=1e-3), expected.astype(np.float64), x, 8)
    close(cuop.layer_norm(x, gamma, eps=1e-3), (expected - beta).astype(np.float64), x, 8)
    power = np.mean(x.astype(np.longdouble) ** 2, axes, keepdims=True)
    expected = x / np.sqrt(power + 1e-3) * gamma
    close(cuop.rms_norm(x, gamma, eps=1e-3), expected.astype(np.float64), x, 8)


@SETTINGS
@given(arrays(min_dims=2))
def test_layer_norm_by_channel(x):
    if x.shape[-1] == x.shape[1]:
        return  # the trailing rule wins
    gamma = np.linspace(-1, 2, x.shape[1]).astype(x.dtype)
    column = gamma.reshape((1, -1) + (1,) * (x.ndim - 2))
    expected = normalized(x, tuple(range(1, x.ndim)), 1e-3) * column + column
    close(cuop.layer_norm(x, gamma, gamma, eps=1e-3), expected.astype(np.float64), x, 8)


@SETTINGS
@given(arrays(min_dims=2))
def test_batch_norm(x):
    rng = np.random.default_rng(2)
    channels = x.shape[1]
    gamma, beta, mean = (rng.standard_normal(channels).astype(x.dtype) for _ in range(3))
    variance = (rng.random(channels) + 0.5).astype(x.dtype)
    shape = (1, channels) + (1,) * (x.ndim - 2)
    column = [v.astype(np.float64).reshape(shape) for v in (gamma, beta, mean, variance)]
    expected = (x.astype(np.float64) - column[2]) / np.sqrt(column[3] + 1e-3) * column[0] + column[
        1
    ]
    close(cuop.batch_norm(x, gamma, beta, mean, variance, eps=1e-3), expected, x, 8)

    count = x.size // channels
    if count < 2:
        return
    axes = (0, *range(2, x.ndim))
    moved_mean, moved_variance = cuop.tensor(mean), cuop.tensor(variance)
    ours = cuop.batch_norm(
        x, gamma, beta, moved_mean, moved_variance, eps=1e-3, momentum=0.3, training=True
    )
    expected = normalized(x, axes, 1e-3) * column[0] + column[1]
    close(ours, expected.astype(np.float64), x, 8)
    wide = x.astype(np.float64)
    tolerance = TOLERANCE[str(x.dtype)]
    expected = 0.7 * mean + 0.3 * wide.mean(axes)
    np.testing.assert_allclose(moved_mean.to_numpy(), expected, tolerance, tolerance)
    expected = 0.7 * variance + 0.3 * wide.var(axes, ddof=1)
    np.testing.assert_allclose(moved_variance.to_numpy(), expected, tolerance, tolerance)


@pytest.mark.cpu
def test_training_moves_statistics_that_are_arrays():
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    mean, variance = np.zeros(3, np.float32), np.ones(3, np.float32)
    cuop.batch_norm(x, running_mean=mean, running_var=variance, momentum=0.5, training=True)
    np.testing.assert_allclose(mean, x.mean(0) / 2, 1e-6)
    np.testing.assert_allclose(variance, (1 + x.var(0, ddof=1)) / 2, 1e-6)


def test_normalisation_survives_a_large_mean():
    rng = np.random.default_rng(3)
    x = (rng.standard_normal((4, 4096)) + 3e4).astype(np.float32)
    expected = normalized(x, (1,), 1e-5).astype(np.float64)
    ours = cuop.layer_norm(x, np.ones(4096, np.float32)).to_numpy()
    np.testing.assert_allclose(ours, expected, atol=2e-6)


def test_mixed_parameters_in_place_and_strided_out():
    x = cuop.tensor(np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4))
    half = x.to("float16")
    gamma = cuop.ones(4)
    assert cuop.layer_norm(half, gamma).dtype == "float16"
    expected = cuop.layer_norm(x, gamma).to_numpy()
    out = cuop.zeros((3, 8))
    cuop.layer_norm(x, gamma, out=out[:, ::2])
    np.testing.assert_array_equal(out.to_numpy()[:, ::2], expected)
    assert not out.to_numpy()[:, 1::2].any()
    cuop.layer_norm(x, gamma, out=x)
    np.testing.assert_array_equal(x, expected)


def test_errors_are_typed_and_worded():
    x = cuop.ones((2, 3, 4))
    with pytest.raises(cuop.DTypeError, match="softmax: dtype int32"):
        cuop.softmax(x.to("int32"))
    with pytest.raises(cuop.ShapeError, match="axis 3 is out of range"):
        cuop.softmax(x, 3)
    with pytest.raises(cuop.ShapeError, match="trailing dimensions.*x.shape\\[1\\]"):
        cuop.layer_norm(x, cuop.ones(5))
    with pytest.raises(cuop.ShapeError, match="beta has shape"):
        cuop.layer_norm(x, cuop.ones(4), cuop.ones(3))
    with pytest.raises(cuop.DTypeError, match="gamma has dtype float64"):
        cuop.layer_norm(x, cuop.ones(4, "float64"))
    with pytest.raises(cuop.ExecutionError, match="eps"):
        cuop.layer_norm(x, cuop.ones(4), eps=-1.0)
    with pytest.raises(cuop.ShapeError, match="rms_norm: gamma"):
        cuop.rms_norm(x, cuop.ones(3))
    with pytest.raises(cuop.ShapeError, match="one entry for each channel"):
        cuop.batch_norm(x, cuop.ones(4))
    with pytest.raises(cuop.ShapeError, match=r"\[N, C\]"):
        cuop.batch_norm(cuop.ones(3))
    with pytest.raises(cuop.ShapeError, match="more than one value"):
        cuop.batch_norm(cuop.ones((1, 3)), training=True)
    with pytest.raises(cuop.ExecutionError, match="momentum"):
        cuop.batch_norm(x, momentum=2.0, training=True)
    moved = cuop.ones(3)
    for name, arguments in [
        ("running_var", {"running_mean": moved, "running_var": moved}),
        ("gamma", {"running_mean": moved, "gamma": moved}),
        ("beta", {"running_var": moved, "beta": moved}),
        ("x", {"running_var": x[0, :, 0]}),
    ]:
        with pytest.raises(cuop.ExecutionError, match=f"shares memory with {name}; pass a copy"):
            cuop.batch_norm(x, **arguments, training=True)
    assert cuop.batch_norm(x, moved, moved, moved, moved).shape == x.shape
    frozen = np.ones(3, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(cuop.ExecutionError, match="read-only"):
        cuop.batch_norm(x, running_mean=frozen, training=True)
