"""Convolutions against a definition written here and against SciPy, in float64."""

import itertools

import numpy as np
import pytest
import scipy.signal
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from raised_errors import each_raises
from raised_errors import zeros as z
from random_arrays import INTEGERS, random_array

import cuop

SETTINGS = settings(max_examples=80, deadline=None)
TOLERANCE = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 3e-6, "float64": 1e-13}
COMPLEX = {"complex64": 3e-6, "complex128": 1e-13}
CONV = {1: cuop.conv1d, 2: cuop.conv2d, 3: cuop.conv3d}
DTYPES = {
    "onednn": ["float16", "bfloat16", "float32"],
    "gemm": [*TOLERANCE, *COMPLEX],
    "direct": [*TOLERANCE, *INTEGERS],
}
VARIANTS = ["gemm", "direct"] + (["onednn"] if cuop.dnn_info()["available"] else [])


def reference(x, w, bias, stride, padding, dilation, groups):
    """The definition, one kernel element at a time."""
    spatial = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    out = [
        (x.shape[i + 2] - dilation[i] * (w.shape[i + 2] - 1) - 1) // stride[i] + 1
        for i in range(spatial)
    ]
    y = np.zeros((x.shape[0], w.shape[0], *out), x.dtype)
    x = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
    w = w.reshape(groups, -1, *w.shape[1:])
    for tap in itertools.product(*(range(k) for k in w.shape[3:])):
        window = tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, o, s in zip(tap, dilation, out, stride, strict=True)
        )
        part = np.einsum("ngc...,goc->ngo...", x[(..., *window)], w[(..., *tap)])
        y += part.reshape(y.shape)
    return y + (0 if bias is None else bias.reshape(-1, *[1] * spatial))


def wide(dtype):
    """The NumPy dtype in which the definition is computed; 64-bit integers wrap as all do."""
    if dtype in INTEGERS:
        return dtype.strip("0123456789") + "64"
    return "complex128" if dtype in COMPLEX else "float64"


def random_tensor(rng, shape, dtype):
    """A tensor and its values in `wide(dtype)`; integers of the whole range."""
    if dtype in INTEGERS:
        values = random_array(rng, shape, dtype)
        return cuop.tensor(values), values.astype(wide(dtype))
    values = rng.standard_normal(shape)
    if dtype in COMPLEX:
        values = values + 1j * rng.standard_normal(shape)
    tensor = cuop.tensor(values).to(dtype)
    return tensor, tensor.to(wide(dtype)).to_numpy()


def check(case, dtype, variant, seed, views=False):
    n, groups, c, o, size, kernel, stride, padding, dilation, with_bias = case
    spatial = len(size)
    rng = np.random.default_rng(seed)
    x, x_values = random_tensor(rng, (n, c * groups, *size), dtype)
    w, w_values = random_tensor(rng, (o * groups, c, *kernel), dtype)
    bias, bias_values = random_tensor(rng, (o * groups,), dtype) if with_bias else (None, None)
    if views:
        x = cuop.swapaxes(cuop.swapaxes(x, 0, 1).clone(), 0, 1)
        w = cuop.swapaxes(cuop.swapaxes(w, 0, 1).clone(), 0, 1)
    geometry = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    y = CONV[spatial](x, w, bias, variant=variant, **geometry)
    assert str(y.dtype).endswith(dtype)
    expected = reference(x_values, w_values, bias_values, **geometry)
    got = y.to_numpy() if dtype in INTEGERS else y.to(wide(dtype)).to_numpy()
    assert got.shape == expected.shape
    if dtype in INTEGERS:
        np.testing.assert_array_equal(got, expected.astype(dtype))
    else:
        size_of_bias = np.abs(bias_values) if with_bias else None
        scale = reference(np.abs(x_values), np.abs(w_values), size_of_bias, **geometry) + 1
        assert np.all(np.abs(got - expected) <= {**TOLERANCE, **COMPLEX}[dtype] * scale)
    if views:
        out = cuop.swapaxes(cuop.swapaxes(cuop.zeros(y.shape, dtype=dtype), 0, 1).clone(), 0, 1)
        CONV[spatial](x, w, bias, variant=variant, out=out, **geometry)
        assert np.array_equal(out.to(got.dtype.name).to_numpy(), got)


@st.composite
def cases(draw):
    spatial = draw(st.sampled_from([1, 2, 2, 2, 3]))
    most = {1: 70, 2: 19, 3: 7}[spatial]

    def axes(low, high):
        return tuple(draw(st.integers(low, high)) for _ in range(spatial))

    case = (
        draw(st.integers(1, 3)),
        draw(st.sampled_from([1, 1, 2, 3])),
        draw(st.sampled_from([1, 2, 3, 16, 17])),
        draw(st.sampled_from([1, 2, 4, 5, 16, 19])),
        axes(1, most),
        axes(1, 4),
        axes(1, 3),
        axes(0, 5),
        axes(1, 3),
        draw(st.booleans()),
    )
    size, kernel, padding, dilation = case[4], case[5], case[7], case[8]
    geometry = zip(size, kernel, padding, dilation, strict=True)
    assume(all(i + 2 * p > d * (k - 1) for i, k, p, d in geometry))
    return case


@pytest.mark.cpu
@pytest.mark.parametrize("variant", VARIANTS)
@SETTINGS
@given(
    case=cases(),
    data=st.data(),
    views=st.booleans(),
    seed=st.integers(0, 999),
)
def test_variants(variant, case, data, views, seed):
    dtype = data.draw(st.sampled_from(DTYPES[variant]), label="dtype")
    check(case, dtype, variant, seed, views)


LARGE = [
    (1, 1, 64, 48, (57, 61), (3, 3), (1, 1), (1, 1), (1, 1), True),  # several tiles
    (2, 1, 700, 8, (9, 9), (3, 3), (1, 1), (1, 1), (1, 1), True),  # several channel blocks
    (2, 40, 1, 1, (33, 35), (3, 3), (2, 2), (1, 1), (1, 1), False),  # depthwise
    (1, 1, 3, 24, (64, 64), (7, 7), (2, 2), (3, 3), (1, 1), True),  # a network's first layer
    (1, 1, 64, 32, (30, 30), (1, 1), (1, 1), (0, 0), (1, 1), True),  # pointwise
    (1, 1, 6, 6, (5, 5), (1, 1), (1, 1), (4, 4), (1, 1), True),  # padding beyond the kernel
]


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "complex64"])
@pytest.mark.parametrize("case", LARGE)
def test_other_dtypes_in_shapes_of_networks(case, dtype):
    check(case, dtype, "auto", 2)


@pytest.mark.cpu
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("case", LARGE)
def test_shapes_of_networks(case, variant):
    check(case, "float32", variant, 1)


def test_agrees_with_scipy():
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((20, 30)), rng.standard_normal((5, 4))
    expected = scipy.signal.correlate(x, w, mode="valid")
    got = cuop.conv2d(x[None, None], w[None, None]).to_numpy()[0, 0]
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.cpu
@pytest.mark.parametrize("variant", VARIANTS)
def test_nan_stays_in_its_windows(variant):
    x = np.ones((1, 1, 8, 8), np.float32)
    x[0, 0, 4, 4] = np.nan
    y = cuop.conv2d(x, np.ones((1, 1, 3, 3), np.float32), variant=variant).to_numpy()[0, 0]
    assert np.isnan(y[2:5, 2:5]).all()
    assert np.isnan(y).sum() == 9


@pytest.mark.cpu
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize(
    ("variant", "dtype"),
    [(v, d) for v in VARIANTS for d in DTYPES[v] if d not in COMPLEX],
)
def test_the_activation_is_relu(variant, dtype, with_bias):
    rng = np.random.default_rng(6)
    x, w, bias = (random_tensor(rng, s, dtype)[0] for s in ((2, 4, 9, 8), (6, 2, 3, 3), (6,)))
    if dtype in TOLERANCE:
        x[0, 0, 4, 4], x[1, 2, 3, 3] = np.nan, -np.inf
    arguments = (x, w, bias) if with_bias else (x, w)
    options = {"padding": 1, "groups": 2, "variant": variant}
    y = cuop.conv2d(*arguments, activation="relu", **options)
    expected = cuop.relu(cuop.conv2d(*arguments, **options))
    np.testing.assert_array_equal(y.to(wide(dtype)).to_numpy(), expected.to(wide(dtype)).to_numpy())
    out = cuop.zeros(y.shape, dtype=dtype)
    assert cuop.conv2d(*arguments, activation="relu", out=out, **options) is out
    np.testing.assert_array_equal(out.to(wide(dtype)).to_numpy(), y.to(wide(dtype)).to_numpy())


@pytest.mark.parametrize("conv", CONV.values())
def test_every_convolution_rectifies(conv):
    axes = list(CONV.values()).index(conv) + 1
    x, w = cuop.ones((1, 1, *[3] * axes)), cuop.ones((2, 1, *[1] * axes))
    y = conv(x, w, cuop.tensor([-3.0, 2.0]), activation="relu").to_numpy()
    assert np.all(y[0, 0] == 0)
    assert np.all(y[0, 1] == 3)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64"])
def test_empty_axes(dtype):
    assert cuop.conv2d(z(0, 2, 5, 5, dtype=dtype), z(3, 2, 3, 3, dtype=dtype)).shape == (0, 3, 3, 3)
    bias = cuop.ones((3,), dtype=dtype)
    y = cuop.conv2d(z(1, 0, 5, 5, dtype=dtype), z(3, 0, 3, 3, dtype=dtype), bias)
    assert np.all(y.to_numpy() == 1)
    y = cuop.conv2d(z(1, 2, 0, 5, dtype=dtype), z(3, 2, 3, 3, dtype=dtype), bias, padding=2)
    assert y.shape == (1, 3, 2, 7)
    assert np.all(y.to_numpy() == 1)


@pytest.mark.cpu
def test_the_variant_that_runs_is_told():
    x, w = z(1, 8, 9, 9), z(8, 8, 3, 3)
    auto = cuop.conv_variant(x, w)
    assert auto == ("onednn" if "onednn" in VARIANTS else "gemm")
    for dtype in ("float32", "float64", "bfloat16"):  # of few channels with and without oneDNN
        image, filters = z(1, 3, 32, 32).to(dtype), z(16, 3, 3, 3).to(dtype)
        assert cuop.conv_variant(image, filters) == "direct"
        assert cuop.conv_variant(image[:, :1], filters[:, :1]) == "gemm"
    # Patches that share no pixel are the rows of a matrix as they lie.
    assert cuop.conv_variant(z(1, 3, 32, 32), z(16, 3, 4, 4), stride=4) == "gemm"
    assert cuop.conv_variant(z(1, 3, 32, 32), z(16, 3, 4, 4), stride=(4, 3)) == "direct"
    steps = cuop.conv_variant(z(1, 3, 32, 32), z(16, 3, 7, 7), stride=2)
    assert steps == "direct" or (steps == "onednn" and "onednn" in VARIANTS)
    assert cuop.conv_variant(z(1, 3, 32, 32), z(3, 1, 3, 3), groups=3) == auto
    assert cuop.conv_variant(x.to("float64"), w.to("float64")) == "gemm"
    depthwise = z(8, 1, 3, 3, dtype="float64")
    assert cuop.conv_variant(x.to("float64"), depthwise, groups=8) == "direct"
    assert cuop.conv_variant(x, w, variant="gemm") == "gemm"
    assert cuop.conv_variant(x.to("int8"), w.to("int8")) == "direct"
    assert cuop.conv_variant(x.to("complex64"), w.to("complex64")) == "gemm"


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int16"])
def test_steps_longer_than_any_image(dtype):
    """Strides, paddings and dilations beyond 32 bits, which libraries do not count."""
    x, w = cuop.ones((1, 1, 4, 4), dtype=dtype), cuop.ones((1, 1, 2, 2), dtype=dtype)
    far = 2**40
    assert np.array_equal(cuop.conv2d(x, w, stride=far).to_numpy(), [[[[4]]]])
    assert np.array_equal(cuop.conv2d(x, w, stride=2**63 - 1).to_numpy(), [[[[4]]]])
    if dtype == "int16" and x.device == "cpu":  # its direct loops would copy the padded image
        with pytest.raises(cuop.ShapeError, match="does not fit in 64 bits"):
            cuop.conv2d(x, w, stride=far, padding=far)
        with pytest.raises(cuop.MemoryError, match="were asked of cpu"):
            cuop.conv2d(x, w, stride=(1, far), padding=(1, far))
        return
    y = cuop.conv2d(x, w, stride=far, padding=far).to_numpy()
    assert np.array_equal(y, [[[[0, 0, 0], [0, 4, 0], [0, 0, 0]]]])
    y = cuop.conv2d(x, w, stride=far, padding=far, dilation=far).to_numpy()
    assert np.array_equal(y, np.ones((1, 1, 2, 2)))
    most = 2**62 - 4
    assert cuop.conv2d(x, w, stride=2**62, padding=most).shape == (1, 1, 2, 2)


test_errors = each_raises(
    (lambda: cuop.conv2d(z(2, 3, 4), z(1, 3, 1, 1)), cuop.ShapeError, "conv2d: x has shape"),
    (lambda: cuop.conv2d(z(1, 3, 4, 4), z(1, 3, 1)), cuop.ShapeError, "conv2d: w has shape"),
    (lambda: cuop.conv2d(z(1, 3, 4, 4), z(1, 2, 1, 1)), cuop.ShapeError, "needs 3"),
    (lambda: cuop.conv2d(z(1, 3, 4, 4), z(2, 1, 1, 1), groups=2), cuop.ShapeError, "divide"),
    (lambda: cuop.conv2d(z(1, 3, 4, 4), z(2, 3, 1, 1), groups=0), cuop.ShapeError, "groups"),
    (lambda: cuop.conv2d(z(1, 1, 2, 2), z(1, 1, 3, 3)), cuop.ShapeError, "at least 3"),
    (lambda: cuop.conv2d(z(1, 1, 2, 2), z(1, 1, 0, 1)), cuop.ShapeError, "kernel axis"),
    (lambda: cuop.conv2d(z(1, 1, 4, 4), z(1, 1, 2, 2), stride=0), cuop.ShapeError, "stride"),
    (
        lambda: cuop.conv2d(z(1, 1, 4, 4), z(1, 1, 2, 2), padding=(1, 2, 3)),
        cuop.ShapeError,
        "padding is .* needs 1 or 2 values",
    ),
    (
        lambda: cuop.conv2d(z(1, 1, 4, 4), z(1, 1, 2, 2), padding=-1),
        cuop.ShapeError,
        "at least 0",
    ),
    (lambda: cuop.conv2d(z(1, 1, 4, 4), z(1, 1, 2, 2), z(2)), cuop.ShapeError, "bias has"),
    (
        lambda: cuop.conv2d(z(1, 1, 4, 4), z(1, 1, 2, 2, dtype="float64")),
        cuop.DTypeError,
        "w has dtype",
    ),
    (
        lambda: cuop.conv2d(*[z(1, 1, 2, 2, dtype="bool")] * 2),
        cuop.DTypeError,
        "conv2d: dtype bool .* supported are int8",
    ),
    pytest.param(
        lambda: cuop.conv2d(*[z(1, 1, 2, 2, dtype="int32")] * 2, variant="gemm"),
        cuop.ExecutionError,
        "'gemm' cannot run: BLAS has no integers, the tensors are int32",
        marks=pytest.mark.cpu,
    ),
    pytest.param(
        lambda: cuop.conv2d(*[z(1, 1, 2, 2, dtype="complex64")] * 2, variant="direct"),
        cuop.ExecutionError,
        "'direct' cannot run: .* the tensors are complex64",
        marks=pytest.mark.cpu,
    ),
    (
        lambda: cuop.conv2d(z(1, 1, 4, 4), z(1, 1, 2, 2), padding=2**62),
        cuop.ShapeError,
        "conv2d: .* does not fit in 64 bits",
    ),
    (
        lambda: cuop.conv2d(z(1, 1, 4, 4), z(1, 1, 2, 2), padding=2**62 - 1),
        cuop.ShapeError,
        "conv2d: .* does not fit in 64 bits",
    ),
    (
        lambda: cuop.conv2d(z(1, 1, 4, 4), z(1, 1, 2, 2), dilation=2**63 - 1),
        cuop.ShapeError,
        "conv2d: .* does not fit in 64 bits",
    ),
    (
        lambda: cuop.conv2d(z(1, 1, 4, 4), z(1, 1, 2, 2), variant="winograd"),
        cuop.ExecutionError,
        "known are auto, onednn",
    ),
    (
        lambda: cuop.conv2d(z(1, 1, 4, 4), z(1, 1, 2, 2), activation="gelu"),
        cuop.ExecutionError,
        "activation 'gelu' is unknown; known are none, relu",
    ),
    (
        lambda: cuop.conv1d(*[z(1, 1, 2, dtype="complex64")] * 2, activation="relu"),
        cuop.DTypeError,
        "conv1d: the activation 'relu' is for real numbers, x has dtype complex64",
    ),
    pytest.param(
        lambda: cuop.conv2d(
            z(1, 1, 4, 4, dtype="float64"), z(1, 1, 2, 2, dtype="float64"), variant="onednn"
        ),
        cuop.ExecutionError,
        "float32",
        marks=pytest.mark.cpu,
    ),
    (
        lambda: cuop.conv2d(z(1, 1, 4, 4), z(1, 1, 2, 2), out=z(1, 1, 2, 2)),
        cuop.ShapeError,
        "output has shape",
    ),
    are_patterns=True,
)


def test_output_may_not_share_memory_with_an_input():
    x = z(1, 1, 4, 4)
    with pytest.raises(cuop.ExecutionError, match="shares memory with x"):
        cuop.conv2d(x, z(1, 1, 1, 1), out=x)
    w = z(1, 1, 4, 4)
    with pytest.raises(cuop.ExecutionError, match="shares memory with w"):
        cuop.conv2d(x, w, out=w[:, :, 1:2, 1:2])
    bias = z(1)
    with pytest.raises(cuop.ExecutionError, match="shares memory with bias"):
        cuop.conv2d(x, w, bias, out=cuop.reshape(bias, (1, 1, 1, 1)))


def test_an_operator_forgets_the_form_of_old_weights():
    rng = np.random.default_rng(5)
    x = rng.standard_normal((1, 32, 9, 9)).astype(np.float32)
    operator = cuop.Convolution2DFloat(32, 32, 3, 3)
    for _ in range(2):
        w = rng.standard_normal((32, 32, 3, 3)).astype(np.float32)
        operator.set_weight(w)
        for size in (9, 8, 9):
            part = np.ascontiguousarray(x[:, :, :size, :size])
            y = z(1, 32, size - 2, size - 2)
            operator.forward(part, y)
            np.testing.assert_array_equal(y.to_numpy(), cuop.conv2d(part, w).to_numpy())


@pytest.mark.cpu
@pytest.mark.skipif("onednn" not in VARIANTS, reason="oneDNN is not installed")
def test_what_onednn_cannot_count_is_said():
    x, w = z(1, 1, 4, 4), z(1, 1, 2, 2)
    with pytest.raises(cuop.ExecutionError, match="oneDNN counts in 32 bits.* is 2199023255556"):
        cuop.conv2d(x, w, stride=2**40, padding=2**40, variant="onednn")
    with pytest.raises(cuop.ExecutionError, match="oneDNN has no empty problems"):
        cuop.conv2d(z(1, 0, 4, 4), z(1, 0, 2, 2), variant="onednn")
