"""Arguments that nobody gives on purpose, as expressions, and the names that they use."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import cuop


class RaisedOnPurpose(Exception):
    """What the objects and functions here raise; whoever calls them lets it pass."""


def hook(name: str) -> Any:
    """An object one of whose special methods raises."""

    def fail(*arguments: Any, **options: Any) -> Any:
        raise RaisedOnPurpose(name)

    return type("Hook", (), {name: fail})()


def odd(name: str, answer: Any) -> Any:
    """An object one of whose special methods answers something else than it should."""
    return type("Odd", (), {name: lambda *arguments, **options: answer})()


def raising(*arguments: Any, **options: Any) -> Any:
    """A function that raises."""
    raise RaisedOnPurpose("function")


def cyclic() -> list:
    """A list that contains itself."""
    made: list = [1]
    made.append(made)
    return made


def deep() -> list:
    """A list in a list in a list."""
    made: list = [1.0]
    for _ in range(5000):
        made = [made]
    return made


def closed() -> io.BytesIO:
    """A file that is closed."""
    made = io.BytesIO()
    made.close()
    return made


def tensor(shape: tuple, dtype: str = "float32") -> cuop.Tensor:
    """A tensor of small numbers."""
    return cuop.tensor(np.arange(math.prod(shape)).reshape(shape) % 5, dtype=dtype)


NUMBERS = """0 1 2 3 -1 -2 7 0.5 -0.0 1e308 1e-320 nan inf -inf 1j complex(nan,inf) True False 2**31
2**40 2**62 2**63 2**64 -2**31 -2**63 -2**70 10**400 -10**400 np.float64(nan) np.int64(-3) np.bool_(1)
np.uint64(2**64-1) np.float16(2) np.longdouble(2) np.datetime64('2020') 1.5e300""".split()
TEXTS = [
    "''", "'a'", "'cpu'", "'cuda'", "'cuda:99'", "'cpu:-1'", "'float32'", "'int8'", "'complex64'",
    "'float128'", "'zero'", "'lower'", "'exact'", "'a\\0b'", "'\\ud800'", "'x' * 5000", "'None'",
    "b'bytes'", "bytearray(4)", "'{}'", "'%s%n'", "'é\\n'",
]  # fmt: skip
SEQUENCES = [
    "()", "(1,)", "(0,)", "(-1,)", "(2, 3)", "(3, 2)", "(0, 2**40)", "(2**40, 0)", "(2**40, 2**40)",
    "(2**62, 2, 2)", "(1,) * 40", "(2**63,)", "(10**30,)", "(1.5,)", "(True,)", "(None,)", "('a',)",
    "[]", "[1, 2]", "[[1, 2], [3]]", "[[], []]", "[None]", "[1, 'a']", "[[1, [2]], 3]", "cyclic()",
    "deep()", "{}", "{'a': 1}", "{1, 2}", "range(3)", "iter([1, 2])", "(i for i in range(2))",
    "slice(None)", "slice(None, None, 0)", "slice(2**70, -2**70, -1)", "slice('a')", "Ellipsis",
    "(Ellipsis, Ellipsis)", "(slice(None), None, 0)", "[True, False]", "memoryview(b'abc')",
    "memoryview(b'abcd').cast('i')", "[tensor((2,)), tensor((3,))]", "[tensor((2, 3))] * 2", "[nan]",
]  # fmt: skip
ARRAYS = [
    "np.zeros(3)", "np.zeros((2, 3), '>f4')", "np.zeros((2, 3))[:, ::-1]", "np.zeros(())",
    "np.empty((0, 2**40))", "np.zeros((2, 3), 'O')", "np.array(['a'])", "np.zeros(2, 'M8[s]')",
    "np.zeros(2, [('a', 'f4')])", "np.zeros(2, np.longdouble)", "np.zeros(2, 'V3')",
    "np.zeros((1,) * 40)", "np.broadcast_to(np.ones(1), (3, 2**22))", "np.ma.masked_array([1, 2])",
    "np.zeros(5, 'u1')[1:].view('u1')", "np.frombuffer(b'abcdefghi', 'u1')[1:].view('f4')",
    "np.matrix([[1, 2]])", "np.zeros((2, 3), bool)", "np.array([2**63], 'u8')", "np.array(None)",
]  # fmt: skip
TENSORS = [
    "tensor(())", "tensor((0,))", "tensor((3,))", "tensor((2, 3))", "tensor((3, 3))",
    "tensor((2, 3, 4, 5))", "tensor((1,) * 32)", "tensor((0, 3))", "tensor((2, 3), 'bool')",
    "tensor((2, 3), 'int8')", "tensor((2, 3), 'uint64')", "tensor((3,), 'int64')",
    "tensor((2, 3), 'float16')", "tensor((2, 3), 'bfloat16')", "tensor((3, 3), 'float64')",
    "tensor((2, 3), 'complex64')", "tensor((3, 3), 'complex128')", "cuop.flip(tensor((2, 3)))",
    "tensor((2, 3)).T", "cuop.broadcast_to(tensor((1,)), (3, 2**22))", "cuop.zeros((0, 2**40))",
    "cuop.broadcast_to(tensor((1, 1)), (2**11, 2**11))",
]  # fmt: skip
OBJECTS = [
    "None", "object()", "int", "cuop", "cuop.Tensor", "raising", "print", "(lambda *a, **k: 1)",
    "(lambda *a, **k: a[0] if a else None)", "(lambda *a, **k: object())", "closed()", "Ellipsis",
    "NotImplemented", "Exception('text')", "cuop.Device('cpu')", "cuop.float32", "cuop.Generator(1)",
    "cuop.Uplo.LOWER", "np.float32", "np.dtype('f4')", "type",
]  # fmt: skip
HOOKS = [
    *(
        f"hook('__{name}__')"
        for name in "array index float int len getitem iter bool str repr hash eq call fspath "
        "complex dlpack dlpack_device buffer enter getattr length_hint format contains".split()
    ),
    "odd('__array__', 1)", "odd('__array__', None)", "odd('__index__', 'a')", "odd('__len__', -1)",
    "odd('__len__', 2**70)", "odd('__float__', 'a')", "odd('__index__', 2**70)",
    "odd('__fspath__', 1)", "odd('__dlpack__', 1)", "odd('__array_interface__', 1)",
    "odd('__getitem__', 1)", "odd('__iter__', 1)", "odd('__bool__', 2)", "odd('__str__', 1)",
]  # fmt: skip

HOSTILE = [NUMBERS, TEXTS, SEQUENCES, ARRAYS, TENSORS, OBJECTS, HOOKS]
NAMES: dict[str, Any] = {
    "np": np,
    "cuop": cuop,
    "nan": math.nan,
    "inf": math.inf,
    **{f.__name__: f for f in (hook, odd, raising, cyclic, deep, closed, tensor)},
}

# What a parameter of a kind of type is given when it is not the one that is attacked.
GOOD: dict[str, list[str]] = {
    "int": ["1", "2"],
    "float": ["1.0", "0.5"],
    "bool": ["True", "False"],
    "str": ["'cpu'", "'a'"],
    "Number": ["1.0", "2"],
    "Tensor": ["tensor((3, 3))", "tensor((2, 3))", "tensor((3,))"],
    "ArrayLike": ["tensor((3, 3))", "tensor((3,))", "tensor((1, 2, 4, 4))"],
    "ShapeLike": ["(2, 3)", "3"],
    "AxesLike": ["0", "(0,)", "-1"],
    "DTypeLike": ["'float32'", "'int64'"],
    "DeviceLike": ["'cpu'"],
    "Callable": ["(lambda *a, **k: 1)", "raising"],
    "Sequence": ["[tensor((3, 3))] * 2", "[1, 2]"],
}
Evaluate = Callable[[str], Any]


def evaluate(text: str) -> Any:
    """The value of an expression of these names."""
    return eval(text, NAMES)
