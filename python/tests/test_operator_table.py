"""What all operator classes promise alike, checked class by class from one table."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

import cuop

KINDS = [("Float", np.float32), ("Double", np.float64)]


def affine(x):
    mean, var = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(var + 1e-5)


SQUARE = np.array([[2.0, 1.0], [1.0, 3.0]])
PAIR = np.array([[1.0, -2.0], [3.0, 4.0]])
IMAGE = np.arange(16.0).reshape(1, 1, 4, 4)


@dataclasses.dataclass
class Row:
    """One class: how it is made and called, and what the documentation says it answers."""

    name: str
    inputs: dict
    output: str
    expected: Callable
    shape: tuple
    options: dict = dataclasses.field(default_factory=dict)
    weights: dict = dataclasses.field(default_factory=dict)
    has_jit: bool = False
    call: dict = dataclasses.field(default_factory=dict)
    start: float = 0.0

    def make(self, kind, prefix=""):
        op = getattr(cuop, prefix + self.name + kind)(**self.options)
        for setter, value in self.weights.items():
            getattr(op, setter)(value)
        return op


TABLE = [
    Row("Scal", {}, "x", lambda: np.full(3, 6.0), (3,), {"alpha": 2}, start=3.0),
    Row("Axpy", {"x": [1, 2, 3]}, "y", lambda x: 2 * x + 1, (3,), {"alpha": 2}, start=1.0),
    Row("Copy", {"x": PAIR.T}, "y", lambda x: x, (2, 2)),
    Row(
        "Gemm",
        {"A": PAIR},
        "C",
        lambda a: 2 * a.T @ SQUARE.T + 3,
        (2, 2),
        {"transA": True, "transB": True, "alpha": 2, "beta": 3},
        {"set_weight": SQUARE},
        True,
        start=1.0,
    ),
    Row(
        "Gemv",
        {"x": [1, 2]},
        "y",
        lambda x: 2 * PAIR.T @ x + 3,
        (2,),
        {"transA": True, "alpha": 2, "beta": 3},
        {"set_weight": PAIR},
        True,
        start=1.0,
    ),
    Row(
        "Symm",
        {"B": PAIR},
        "C",
        lambda b: 2 * b @ SQUARE + 3,
        (2, 2),
        {"side": 1, "uplo": 1, "alpha": 2, "beta": 3},
        {"set_weight": np.triu(SQUARE)},
        start=1.0,
    ),
    Row(
        "Trsm",
        {"B": PAIR},
        "X",
        lambda b: np.linalg.solve(np.tril(SQUARE).T, 2 * b),
        (2, 2),
        {"side": 0, "uplo": 1, "trans": 1, "diag": 0, "alpha": 2},
        {"set_matrix_a": SQUARE},
    ),
    Row("Relu", {"x": PAIR}, "y", lambda x: np.maximum(x, 0), (2, 2), has_jit=True),
    Row(
        "Softmax",
        {"x": PAIR},
        "y",
        lambda x: np.exp(x) / np.exp(x).sum(0),
        (2, 2),
        has_jit=True,
        call={"axis": 0},
    ),
    Row(
        "BatchNorm",
        {"x": PAIR},
        "y",
        lambda x: (x - [1, 2]) / np.sqrt([4, 9]) * [2, 3] + [5, 6],
        (2, 2),
        {"eps": 0.0, "momentum": 0.1},
        {
            "set_gamma": [2, 3],
            "set_beta": [5, 6],
            "set_running_mean": [1, 2],
            "set_running_var": [4, 9],
        },
        True,
    ),
    Row(
        "LayerNorm",
        {"x": PAIR},
        "y",
        lambda x: affine(x) * [2, 3] + [5, 6],
        (2, 2),
        {"eps": 1e-5},
        {"set_gamma": [2, 3], "set_beta": [5, 6]},
        True,
    ),
    Row(
        "Convolution2D",
        {"x": IMAGE},
        "y",
        lambda x: 2 * x[:, :, ::2, ::3] + 1,
        (1, 1, 2, 2),
        {
            "in_channels": 1, "out_channels": 1, "kernel_h": 1, "kernel_w": 1, "stride_h": 2,
            "stride_w": 3, "pad_h": 1, "pad_w": 1, "dilation_h": 1, "dilation_w": 1, "groups": 1,
        },
        {"set_weight": [[[[2]]]], "set_bias": [1]},
        True,
        {"pad_h": 0, "pad_w": 0},
    ),
    Row(
        "MatMul",
        {"a": PAIR},
        "out",
        lambda a: a.T @ SQUARE.T,
        (2, 2),
        {"transA": True, "transB": True},
        {"set_weight": SQUARE},
        True,
    ),
    Row(
        "BatchMatMul",
        {"a": PAIR[None], "b": SQUARE[None]},
        "out",
        lambda a, b: a @ b.swapaxes(1, 2),
        (1, 2, 2),
        {"transA": False, "transB": True},
    ),
    Row(
        "MaxPool2D",
        {"x": IMAGE},
        "y",
        lambda x: x[:, :, 1::2, 1::2],
        (1, 1, 2, 2),
        call={"kernel_h": 2, "kernel_w": 2},
    ),
    Row(
        "AveragePool2D",
        {"x": IMAGE},
        "y",
        lambda x: x[:, :, ::2, ::2] + 2.5,
        (1, 1, 2, 2),
        {"kernel_h": 2, "kernel_w": 2, "stride_h": 2, "stride_w": 2, "pad_h": 0, "pad_w": 0},
    ),
    Row("GlobalMaxPool2D", {"x": IMAGE}, "y", lambda x: x.max((2, 3)), (1, 1)),
    Row("GlobalAveragePool2D", {"x": IMAGE}, "y", lambda x: x.mean((2, 3)), (1, 1)),
    Row("Flatten", {"x": IMAGE}, "y", lambda x: x.reshape(1, 16), (1, 16), {"start_dim": 1}),
    Row(
        "View",
        {"x": IMAGE},
        "y",
        lambda x: x.ravel()[3:9].reshape(2, 3),
        (2, 3),
        call={"offset": 3, "shape": (2, 3)},
    ),
]  # fmt: skip
CASES = [
    pytest.param(row, kind, dtype, prefix, id=prefix + row.name + kind)
    for row in TABLE
    for kind, dtype in KINDS
    for prefix in (["", "JIT"] if row.has_jit else [""])
]
every_class = pytest.mark.parametrize("row, kind, dtype, prefix", CASES)


def expected_of(row):
    return row.expected(*[np.asarray(value, float) for value in row.inputs.values()])


@every_class
def test_forward_fills_and_returns_its_output(row, kind, dtype, prefix):
    op = row.make(kind, prefix)
    assert op.name == prefix + row.name + kind and isinstance(op, cuop.Operator)
    for convert in (
        lambda value: np.asarray(value).tolist(),
        lambda value: np.asarray(value, np.float64),
        lambda value: np.asarray(value, np.int32),
        lambda value: cuop.tensor(np.asarray(value), dtype=dtype),
    ):
        inputs = {name: convert(value) for name, value in row.inputs.items()}
        for is_named in (False, True):
            out = cuop.full(row.shape, row.start, dtype)
            arguments = [] if is_named else [*inputs.values(), out]
            named = {**inputs, row.output: out} if is_named else {}
            assert op.forward(*arguments, **named, **row.call) is out
            np.testing.assert_allclose(np.asarray(out), expected_of(row), rtol=1e-5)
    assert op.get_last_error() == ""


@every_class
def test_the_last_error_is_remembered(row, kind, dtype, prefix):
    op = row.make(kind, prefix)
    out = cuop.zeros(row.shape, np.int32)
    with pytest.raises(cuop.DTypeError, match=f"{op.name}: {row.output} has dtype int32") as error:
        op.forward(*row.inputs.values(), out, **row.call)
    assert op.get_last_error() == str(error.value)
    with pytest.raises(cuop.DTypeError, match=f"{row.output} is written to and must be a cuop te"):
        op.forward(*row.inputs.values(), np.zeros(row.shape, dtype), **row.call)
    assert row.make(kind, prefix).get_last_error() == ""


@every_class
def test_weights_are_those_of_the_moment_when_they_were_set(row, kind, dtype, prefix):
    op = getattr(cuop, prefix + row.name + kind)(**row.options)
    sources = [np.array(value, dtype) for value in row.weights.values()]
    tensors = [cuop.tensor(np.array(value, dtype)) for value in row.weights.values()]
    for given in (sources, tensors):
        for setter, value in zip(row.weights, given, strict=True):
            getattr(op, setter)(value)
            value.fill(77)
        out = op.forward(*row.inputs.values(), cuop.full(row.shape, row.start, dtype), **row.call)
        np.testing.assert_allclose(np.asarray(out), expected_of(row), rtol=1e-5)


@every_class
def test_wrong_kinds_are_named(row, kind, dtype, prefix):
    name = prefix + row.name + kind
    with pytest.raises(TypeError, match=f"{name}: .*'foo'"):
        getattr(cuop, name)(**row.options, foo=1)
    op = row.make(kind, prefix)
    with pytest.raises(TypeError, match=f"{name}: .*{row.output}") as error:
        op.forward(*row.inputs.values())
    assert op.get_last_error() == str(error.value)
    out = cuop.zeros(row.shape, dtype)
    for option in row.call:
        with pytest.raises(TypeError, match=f"{name}: forward: {option}"):
            op.forward(*row.inputs.values(), out, **{**row.call, option: 2.5})
    for option, value in row.options.items():
        if not option.startswith(("side", "uplo", "trans", "diag")):
            with pytest.raises(TypeError, match=f"{name}: {option}"):
                getattr(cuop, name)(**{**row.options, option: str(value)})


def test_the_table_has_every_operator_class():
    classes = {
        name
        for name, value in vars(cuop).items()
        if isinstance(value, type) and issubclass(value, cuop.Operator) and value != cuop.Operator
    }
    prefixes = [prefix + row.name for row in TABLE for prefix in ("", *["JIT"] * row.has_jit)]
    names = {prefix + kind for prefix in [*prefixes, "Dot"] for kind, _ in KINDS}
    assert classes == names
