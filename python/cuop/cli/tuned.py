"""What `cuop tune ops` measures: JIT wrappers on the sizes that are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuop.errors import ExecutionError


@dataclass(frozen=True)
class Case:
    """One operator on one problem."""

    operator: str
    sizes: tuple[int, ...]
    dtype: str

    @property
    def name(self) -> str:
        """As "gemm 512x512x512 float32"."""
        return f"{self.operator} {'x'.join(map(str, self.sizes))} {self.dtype}"

    def prepare(self, device: str) -> tuple[Any, list[Any]]:
        """A JIT wrapper and the arguments of a call."""
        return OPERATORS[self.operator].prepare(_Maker(self.dtype, device), *self.sizes)


class _Maker:
    """Wrappers and random tensors of one dtype on one device."""

    def __init__(self, dtype: str, device: str) -> None:
        self._dtype = dtype
        self._device = device
        self._random = np.random.default_rng(0)

    def wrapper(self, name: str, *arguments: Any) -> Any:
        import cuop

        kind = "Float" if self._dtype == "float32" else "Double"
        return getattr(cuop, f"JIT{name}{kind}")(*arguments)

    def tensor(self, *shape: int) -> Any:
        import cuop

        return cuop.tensor(self._random.standard_normal(shape), self._dtype).to(self._device)


def _gemm(make: _Maker, m: int, n: int, k: int) -> tuple[Any, list[Any]]:
    gemm = make.wrapper("Gemm")
    gemm.set_weight(make.tensor(k, n))
    return gemm, [make.tensor(m, k), make.tensor(m, n)]


def _gemv(make: _Maker, m: int, n: int) -> tuple[Any, list[Any]]:
    gemv = make.wrapper("Gemv")
    gemv.set_weight(make.tensor(m, n))
    return gemv, [make.tensor(n), make.tensor(m)]


def _matmul(make: _Maker, batch: int, m: int, n: int, k: int) -> tuple[Any, list[Any]]:
    arguments = [make.tensor(batch, m, k), make.tensor(batch, k, n), make.tensor(batch, m, n)]
    return make.wrapper("MatMul"), arguments


def _map(name: str) -> Callable[..., tuple[Any, list[Any]]]:
    def prepare(make: _Maker, rows: int, columns: int) -> tuple[Any, list[Any]]:
        return make.wrapper(name), [make.tensor(rows, columns), make.tensor(rows, columns)]

    return prepare


def _layernorm(make: _Maker, rows: int, columns: int) -> tuple[Any, list[Any]]:
    norm = make.wrapper("LayerNorm")
    norm.set_gamma(make.tensor(columns))
    return norm, [make.tensor(rows, columns), make.tensor(rows, columns)]


def _batchnorm(make: _Maker, batch: int, channels: int, edge: int) -> tuple[Any, list[Any]]:
    shape = (batch, channels, edge, edge)
    return make.wrapper("BatchNorm"), [make.tensor(*shape), make.tensor(*shape)]


def _conv2d(
    make: _Maker, batch: int, inputs: int, outputs: int, edge: int, kernel: int
) -> tuple[Any, list[Any]]:
    conv = make.wrapper("Convolution2D", inputs, outputs, kernel, kernel)
    conv.set_weight(make.tensor(outputs, inputs, kernel, kernel))
    after = edge - kernel + 1
    if after < 1:
        raise ExecutionError(f"tune: conv2d: a kernel of {kernel} does not fit an edge of {edge}")
    return conv, [make.tensor(batch, inputs, edge, edge), make.tensor(batch, outputs, after, after)]


@dataclass(frozen=True)
class Operator:
    """How an operator's sizes are called, which are measured by default, and how it is called."""

    sizes: tuple[str, ...]
    defaults: tuple[tuple[int, ...], ...]
    prepare: Callable[..., tuple[Any, list[Any]]]


OPERATORS = {
    "gemm": Operator(("M", "N", "K"), ((64, 64, 64), (256, 256, 256), (512, 512, 512)), _gemm),
    "gemv": Operator(("M", "N"), ((256, 256), (2048, 2048)), _gemv),
    "matmul": Operator(("BATCH", "M", "N", "K"), ((16, 64, 64, 64),), _matmul),
    "relu": Operator(("ROWS", "COLUMNS"), ((32, 32), (1024, 1024)), _map("Relu")),
    "softmax": Operator(("ROWS", "COLUMNS"), ((32, 32), (1024, 1024)), _map("Softmax")),
    "layernorm": Operator(("ROWS", "COLUMNS"), ((32, 32), (1024, 1024)), _layernorm),
    "batchnorm": Operator(("BATCH", "CHANNELS", "EDGE"), ((8, 16, 32),), _batchnorm),
    "conv2d": Operator(
        ("BATCH", "INPUTS", "OUTPUTS", "EDGE", "KERNEL"), ((4, 8, 16, 32, 3),), _conv2d
    ),
}


def cases(operators: list[str], sizes: list[str], dtypes: list[str]) -> list[Case]:
    """The cases that are asked for; ExecutionError for what is not known or does not fit."""
    names = operators or list(OPERATORS)
    for name in names:
        if name not in OPERATORS:
            raise ExecutionError(f"tune: '{name}' is unknown; known are {', '.join(OPERATORS)}")
    if sizes and len(names) != 1:
        raise ExecutionError("tune: --size needs the one operator that it is for")
    return [
        Case(name, shape, dtype)
        for name in names
        for shape in ([_shape(name, text) for text in sizes] or OPERATORS[name].defaults)
        for dtype in dtypes
    ]


def _shape(name: str, text: str) -> tuple[int, ...]:
    """The sizes in text such as 512x512x512."""
    wanted = OPERATORS[name].sizes
    parts = text.lower().split("x")
    if len(parts) != len(wanted) or not all(part.isdigit() and int(part) > 0 for part in parts):
        raise ExecutionError(f"tune: {name}: --size is '{text}', needed is {'x'.join(wanted)}")
    return tuple(int(part) for part in parts)
