"""Operator objects of neural networks against plain NumPy in double precision."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_threads import in_threads

import cuop

SETTINGS = settings(max_examples=30, deadline=None)
SIZES = st.sampled_from([1, 2, 3, 7, 16])
kinds = pytest.mark.parametrize(
    "kind, dtype, tolerance", [("Float", np.float32, 1e-5), ("Double", np.float64, 1e-12)]
)


def make(name, kind, *args, **options):
    return getattr(cuop, name + kind)(*args, **options)


def numbers(seed, dtype, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def close(actual, expected, tolerance):
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=0, atol=tolerance * scale)


@kinds
def test_relu(kind, dtype, tolerance):
    x = np.array([[-1.5, 0.0], [2.5, np.nan]], dtype)
    y = cuop.zeros((2, 2), dtype)
    relu = make("Relu", kind)
    assert relu.forward(x, y) is y
    np.testing.assert_array_equal(np.asarray(y), [[0, 0], [2.5, np.nan]])
    t = cuop.tensor(x)
    assert relu.forward(t, t) is t  # in place
    np.testing.assert_array_equal(np.asarray(t), [[0, 0], [2.5, np.nan]])
    with pytest.raises(cuop.ExecutionError, match=f"Relu{kind}: .*share"):
        relu.forward(t.view(0, (2,)), t.view(1, (2,)))
    with pytest.raises(cuop.ShapeError, match=f"Relu{kind}: "):
        relu.forward(x, cuop.zeros((3, 2), dtype))


@kinds
@SETTINGS
@given(m=SIZES, n=SIZES, axis=st.sampled_from([None, -1, 0, 1, -2]), seed=st.integers(0, 99))
def test_softmax(kind, dtype, tolerance, m, n, axis, seed):
    x = 50 * numbers(seed, dtype, m, n)
    y = cuop.zeros((m, n), dtype)
    softmax = make("Softmax", kind)
    along = -1 if axis is None else axis
    e = np.exp(x.astype(float) - x.max(axis=along, keepdims=True))
    result = softmax.forward(x, y) if axis is None else softmax.forward(x, y, axis)
    assert result is y
    close(y, e / e.sum(axis=along, keepdims=True), tolerance)


def test_softmax_names_the_axis():
    with pytest.raises(cuop.ShapeError, match="SoftmaxFloat: .*axis 3 is out of range"):
        cuop.SoftmaxFloat().forward([[1.0]], cuop.zeros((1, 1)), axis=3)


def expected_batch_norm(x, gamma, beta, mean, var, eps):
    shape = (1, -1) + (1,) * (x.ndim - 2)
    gamma, beta, mean, var = (np.reshape(v, shape).astype(float) for v in (gamma, beta, mean, var))
    return (x - mean) / np.sqrt(var + eps) * gamma + beta


@kinds
@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5), (2, 3, 4, 5)])
def test_batch_norm_infers_by_default(kind, dtype, tolerance, shape):
    x = numbers(0, dtype, *shape)
    y = cuop.zeros(shape, dtype)
    norm = make("BatchNorm", kind)
    assert norm.forward(x, y) is y
    close(y, expected_batch_norm(x, [1] * 3, [0] * 3, [0] * 3, [1] * 3, 1e-5), tolerance)
    parameters = [np.array(v, dtype) for v in ([1, 2, 3], [0, 1, -1], [0.5, 0, 1], [1, 2, 0.5])]
    norm = make("BatchNorm", kind, 1e-3)
    norm.set_gamma(parameters[0])
    norm.set_beta(parameters[1])
    norm.set_running_mean(parameters[2])
    norm.set_running_var(parameters[3])
    close(norm.forward(x, y), expected_batch_norm(x, *parameters, 1e-3), tolerance)


@kinds
def test_batch_norm_training_moves_the_running_statistics(kind, dtype, tolerance):
    x = numbers(1, dtype, 8, 3, 2)
    y = cuop.zeros(x.shape, dtype)
    norm = make("BatchNorm", kind, momentum=0.25)
    assert norm.get_running_mean() is None
    norm.train(True)
    norm.forward(x, y)
    mean, var = x.astype(float).mean(axis=(0, 2)), x.astype(float).var(axis=(0, 2))
    close(y, expected_batch_norm(x, [1] * 3, [0] * 3, mean, var, 1e-5), 10 * tolerance)
    unbiased = var * 16 / 15
    close(norm.get_running_mean(), 0.25 * mean, tolerance)
    close(norm.get_running_var(), 0.75 + 0.25 * unbiased, tolerance)
    norm.train(False)
    before = norm.get_running_mean().tolist()
    norm.forward(x, y)
    assert norm.get_running_mean().tolist() == before
    expected = expected_batch_norm(x, [1] * 3, [0] * 3, 0.25 * mean, 0.75 + 0.25 * unbiased, 1e-5)
    close(y, expected, tolerance)


def test_batch_norm_refuses_what_makes_no_sense():
    with pytest.raises(cuop.ExecutionError, match="momentum is 1.5, needed is 0 to 1"):
        cuop.BatchNormFloat(1e-5, 1.5)
    with pytest.raises(cuop.ExecutionError, match="eps is -1"):
        cuop.BatchNormFloat(-1)
    norm = cuop.BatchNormFloat()
    norm.set_gamma([1.0, 2.0])
    with pytest.raises(cuop.ShapeError, match="BatchNormFloat: "):
        norm.forward(np.zeros((4, 3)), cuop.zeros((4, 3)))
    norm.train()
    with pytest.raises(cuop.ShapeError, match="BatchNormFloat: "):
        norm.forward(np.zeros((4, 3)), cuop.zeros((4, 3)))
    assert norm.get_running_mean() is None  # a failed step leaves nothing behind
    with pytest.raises(cuop.ShapeError, match=r"gamma has shape \(1, 2\)"):
        norm.set_gamma([[1.0, 2.0]])


@kinds
def test_layer_norm_over_trailing_dimensions(kind, dtype, tolerance):
    x = numbers(2, dtype, 4, 3, 5)
    gamma, beta = numbers(3, dtype, 3, 5), numbers(4, dtype, 3, 5)
    norm = make("LayerNorm", kind, 1e-3)
    norm.set_gamma(gamma)
    norm.set_beta(beta)
    y = cuop.zeros(x.shape, dtype)
    z = x.astype(float)
    mean, var = z.mean(axis=(1, 2), keepdims=True), z.var(axis=(1, 2), keepdims=True)
    assert norm.forward(x, y) is y
    close(y, (z - mean) / np.sqrt(var + 1e-3) * gamma + beta, 10 * tolerance)


@kinds
def test_layer_norm_per_channel(kind, dtype, tolerance):
    x = numbers(2, dtype, 4, 3, 5)
    gamma = np.array([1, 2, 3], dtype)
    norm = make("LayerNorm", kind)
    norm.set_gamma(gamma)
    z = x.astype(float)
    mean, var = z.mean(axis=(1, 2), keepdims=True), z.var(axis=(1, 2), keepdims=True)
    y = norm.forward(x, cuop.zeros(x.shape, dtype))
    close(y, (z - mean) / np.sqrt(var + 1e-5) * gamma[:, None], 10 * tolerance)
    norm.set_gamma(np.ones(4, dtype))
    with pytest.raises(cuop.ShapeError, match=f"LayerNorm{kind}: .*trailing"):
        norm.forward(x, y)


@kinds
def test_layer_norm_without_gamma(kind, dtype, tolerance):
    x = numbers(2, dtype, 4, 3, 5)
    z = x.astype(float)
    norm = make("LayerNorm", kind)
    mean, var = z.mean(axis=-1, keepdims=True), z.var(axis=-1, keepdims=True)
    y = norm.forward(x, cuop.zeros(x.shape, dtype))
    close(y, (z - mean) / np.sqrt(var + 1e-5), 10 * tolerance)
    beta = numbers(4, dtype, 3, 5)  # says over what, as gamma would
    norm.set_beta(beta)
    mean, var = z.mean(axis=(1, 2), keepdims=True), z.var(axis=(1, 2), keepdims=True)
    close(norm.forward(x, y), (z - mean) / np.sqrt(var + 1e-5) + beta, 10 * tolerance)
    scalar = cuop.zeros((), dtype)
    with pytest.raises(cuop.ShapeError, match="needed is at least 1 dimension"):
        make("LayerNorm", kind).forward(scalar, scalar)


def expected_conv(x, w, bias, stride, pad, dilation, groups):
    """Sums of shifted images, written down as the definition says."""
    x = np.pad(x.astype(float), ((0, 0), (0, 0), (pad[0],) * 2, (pad[1],) * 2))
    n, c, height, width = x.shape
    o, per_group, kh, kw = w.shape
    oh = (height - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    ow = (width - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    y = np.zeros((n, o, oh, ow))
    for i in range(o):
        first = i // (o // groups) * per_group
        for r in range(kh):
            for s in range(kw):
                window = x[
                    :, first : first + per_group,
                    r * dilation[0] : r * dilation[0] + (oh - 1) * stride[0] + 1 : stride[0],
                    s * dilation[1] : s * dilation[1] + (ow - 1) * stride[1] + 1 : stride[1],
                ]  # fmt: skip
                y[:, i] += np.einsum("nchw,c->nhw", window, w[i, :, r, s].astype(float))
    return y + np.reshape(bias, (1, -1, 1, 1))


@kinds
@SETTINGS
@given(
    channels=st.sampled_from([(2, 4, 1), (4, 6, 2), (3, 3, 3)]),
    kernel=st.sampled_from([(1, 1), (3, 2)]),
    stride=st.sampled_from([(1, 1), (2, 3)]),
    pad=st.sampled_from([(0, 0), (2, 1)]),
    dilation=st.sampled_from([(1, 1), (2, 1)]),
    has_bias=st.booleans(),
)
def test_convolution(kind, dtype, tolerance, channels, kernel, stride, pad, dilation, has_bias):
    inputs, outputs, groups = channels
    x = numbers(5, dtype, 2, inputs, 9, 8)
    w = numbers(6, dtype, outputs, inputs // groups, *kernel)
    bias = numbers(7, dtype, outputs) if has_bias else np.zeros(outputs, dtype)
    conv = make("Convolution2D", kind, inputs, outputs, *kernel, *stride, *pad, *dilation, groups)
    conv.set_weight(w)
    if has_bias:
        conv.set_bias(bias)
    expected = expected_conv(x, w, bias, stride, pad, dilation, groups)
    y = cuop.zeros(expected.shape, dtype)
    assert conv.forward(x, y) is y
    close(y, expected, 10 * tolerance)


@kinds
def test_convolution_rectifies(kind, dtype, tolerance):
    x, w = numbers(5, dtype, 2, 3, 9, 8), numbers(6, dtype, 4, 3, 3, 3)
    conv = make("Convolution2D", kind, 3, 4, 3, 3, activation="relu")
    conv.set_weight(w)
    bias = numbers(7, dtype, 4)
    conv.set_bias(bias)
    expected = np.maximum(expected_conv(x, w, bias, (1, 1), (0, 0), (1, 1), 1), 0)
    y = cuop.zeros(expected.shape, dtype)
    assert conv.forward(x, y) is y
    close(y, expected, 10 * tolerance)


def test_convolution_padding_may_be_overridden():
    conv = cuop.Convolution2DFloat(1, 1, 3, 3, pad_h=5)
    x, w = numbers(0, np.float32, 1, 1, 6, 6), numbers(1, np.float32, 1, 1, 3, 3)
    conv.set_weight(w)
    y = cuop.zeros((1, 1, 6, 4))
    conv.forward(x, y, pad_h=1)
    close(y, expected_conv(x, w, [0], (1, 1), (1, 0), (1, 1), 1), 1e-4)


def test_convolution_errors():
    conv = cuop.Convolution2DFloat(4, 6, 3, 3, groups=2)
    x, y = cuop.zeros((1, 4, 5, 5)), cuop.zeros((1, 6, 3, 3))
    with pytest.raises(cuop.ExecutionError, match="Convolution2DFloat: .*call set_weight first"):
        conv.forward(x, y)
    with pytest.raises(cuop.ShapeError, match=r"weight has shape .*needed is \(6, 2, 3, 3\)"):
        conv.set_weight(cuop.zeros((6, 4, 3, 3)))
    with pytest.raises(cuop.ShapeError, match=r"bias has shape \(4,\), needed is \(6,\)"):
        conv.set_bias(cuop.zeros(4))
    conv.set_weight(cuop.ones((6, 2, 3, 3)))
    with pytest.raises(cuop.ShapeError, match="Convolution2DFloat: "):
        conv.forward(x, cuop.zeros((1, 6, 4, 3)))
    with pytest.raises(cuop.ExecutionError, match="activation 'tanh' is unknown; known are none"):
        cuop.Convolution2DFloat(4, 6, 3, 3, activation="tanh")
    with pytest.raises(cuop.ShapeError, match="groups is 3, it must divide"):
        cuop.Convolution2DFloat(4, 6, 3, 3, groups=3)
    with pytest.raises(cuop.ShapeError, match="Convolution2DFloat: pad_w is -1, needed is 0 to"):
        conv.forward(x, y, pad_w=-1)


@pytest.mark.parametrize(
    "arguments, reason",
    [
        ((4, 6, 3, 3, 0), "stride_h is 0, needed is 1 to 2147483647"),
        ((4, 6, 3, 0), "kernel_w is 0, needed is 1"),
        ((2**40, 6, 3, 3), f"in_channels is {2**40}, needed is 1 to 2147483647"),
        ((4, 6, 3, 3, 1, 1, -1), "pad_h is -1, needed is 0"),
        ((2**31 - 1, 2**31 - 1, 3, 3), "the bytes of the weight: .* does not fit in 64 bits"),
    ],
)
def test_convolutions_that_make_no_sense_are_refused_at_construction(arguments, reason):
    with pytest.raises(cuop.ShapeError, match=f"Convolution2DFloat: {reason}"):
        cuop.Convolution2DFloat(*arguments)


def test_training_and_inference_may_go_on_at_once():
    norm = cuop.BatchNormFloat()
    x = numbers(0, np.float32, 64, 16)

    def infer():
        y = cuop.zeros((64, 16))
        for _ in range(100):
            norm.forward(x, y)
            assert np.isfinite(np.asarray(y)).all()

    def train():
        own = cuop.zeros((64, 16))
        for _ in range(30):
            norm.train(True)
            norm.forward(x, own)
            norm.train(False)

    in_threads(infer, infer, train)


def windows_of(x, kernel, stride, pad, fill):
    """[N, C, oh, ow, kh * kw] windows of a padded image."""
    x = np.pad(
        x.astype(float), ((0, 0), (0, 0), (pad[0],) * 2, (pad[1],) * 2), constant_values=fill
    )
    views = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=(2, 3))
    views = views[:, :, :: stride[0], :: stride[1]]
    return views.reshape(*views.shape[:4], -1)


@kinds
@pytest.mark.parametrize("kernel, stride, pad", [((2, 2), None, (0, 0)), ((3, 2), (1, 2), (1, 1))])
def test_pooling(kind, dtype, tolerance, kernel, stride, pad):
    x = numbers(3, dtype, 2, 3, 8, 6)
    used = stride or kernel
    largest = windows_of(x, kernel, used, pad, -np.inf).max(-1)
    mean = windows_of(x, kernel, used, pad, 0.0).mean(-1)
    y = cuop.zeros(largest.shape, dtype)
    given = {"stride_h": used[0], "stride_w": used[1]} if stride else {}
    options = {"kernel_h": kernel[0], "kernel_w": kernel[1], "pad_h": pad[0], "pad_w": pad[1]}
    pool = make("MaxPool2D", kind, **options, **given)
    assert pool.forward(x, y) is y
    close(y, largest, tolerance)
    close(make("AveragePool2D", kind, **options, **given).forward(x, y), mean, tolerance)
    if stride is None:  # the window with the call
        close(make("MaxPool2D", kind).forward(x, y, kernel_h=2, kernel_w=2), largest, tolerance)


@kinds
def test_global_pooling_takes_both_shapes(kind, dtype, tolerance):
    x = numbers(3, dtype, 2, 3, 4, 5)
    for shape in [(2, 3, 1, 1), (2, 3)]:
        y = make("GlobalMaxPool2D", kind).forward(x, cuop.zeros(shape, dtype))
        close(y, x.max((2, 3)).reshape(shape), tolerance)
        y = make("GlobalAveragePool2D", kind).forward(x, cuop.zeros(shape, dtype))
        close(y, x.astype(float).mean((2, 3)).reshape(shape), tolerance)


@kinds
@pytest.mark.parametrize("name", ["MaxPool2D", "AveragePool2D"])
def test_a_call_may_override_every_option_of_a_pool(name, kind, dtype, tolerance):
    x = numbers(3, dtype, 2, 3, 9, 8)
    options = {
        "kernel_h": 3, "kernel_w": 2, "stride_h": 2, "stride_w": 1, "pad_h": 1, "pad_w": 1,
    }  # fmt: skip
    wide = windows_of(x, (3, 2), (2, 1), (1, 1), -np.inf if name == "MaxPool2D" else 0.0)
    expected = wide.max(-1) if name == "MaxPool2D" else wide.mean(-1)
    y = cuop.zeros(expected.shape, dtype)
    pool = make(name, kind, 5, 5, 1, 3, 2, 0)
    assert pool.forward(x, y, **options) is y
    close(y, expected, tolerance)
    close(make(name, kind, 5, 5, 2, 1, 1).forward(x, y, 3, 2, pad_w=1), expected, tolerance)
    close(make(name, kind).forward(x, y, 3, 2, 2, 1, 1, 1), expected, tolerance)
    assert pool.cost(x, y, **options)[0] == y.size * 6


@pytest.mark.parametrize(
    "options, reason",
    [
        ({"kernel_h": 0, "kernel_w": 2}, "kernel_h is 0, needed is 1 to 2147483647"),
        ({"kernel_w": -2}, "kernel_w is -2, needed is 1"),
        ({"stride_h": 0}, "stride_h is 0, needed is 1"),
        ({"pad_h": -1}, "pad_h is -1, needed is 0"),
        ({"stride_w": 2**40}, f"stride_w is {2**40}, needed is 1 to 2147483647"),
        ({"kernel_w": 3, "pad_w": 2}, "pad_w is 2, allowed is at most half of kernel_w"),
    ],
)
@pytest.mark.parametrize("name", ["MaxPool2D", "AveragePool2D"])
def test_pools_that_make_no_sense_are_refused_at_construction(name, options, reason):
    with pytest.raises(cuop.ShapeError, match=f"{name}Float: {reason}"):
        make(name, "Float", **options)
    x = cuop.zeros((1, 1, 8, 8))
    pool = make(name, "Float", 4, 4)
    with pytest.raises(cuop.ShapeError, match=f"{name}Float: {reason}") as error:
        pool.forward(x, cuop.zeros((1, 1, 2, 2)), **options)
    assert pool.get_last_error() == str(error.value)


def test_pooling_errors():
    x = cuop.zeros((1, 1, 4, 4))
    with pytest.raises(cuop.ExecutionError, match="MaxPool2DFloat: the window has no kernel_w"):
        cuop.MaxPool2DFloat(kernel_h=2).forward(x, x)
    with pytest.raises(cuop.ShapeError, match="AveragePool2DFloat: "):
        cuop.AveragePool2DFloat(5, 5).forward(x, x)
    with pytest.raises(cuop.ShapeError, match="GlobalMaxPool2DFloat: x has shape"):
        cuop.GlobalMaxPool2DFloat().forward(cuop.zeros((1, 2, 3)), cuop.zeros((1, 2)))
