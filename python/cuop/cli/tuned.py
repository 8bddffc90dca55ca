"""What `cuop tune ops` measures on the sizes that are asked for.

JIT wrappers in float32 and float64, and in the dtypes they do not have plain calls, for which a GPU's
libraries search among their algorithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import typer

_WRAPPED = ("float32", "float64")
#: As they are made at random, before they are of their dtype.
_BYTES_A_NUMBER = 8


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

    def measure(self, device: str) -> Report:
        """The fastest way to do it on the device; measured, unless it is stored already."""
        operator, make = OPERATORS[self.operator], _Maker(self.dtype, device)
        if self.dtype in _WRAPPED:
            return _measure_wrapper(*operator.prepare(make, *self.sizes))
        return _measure_libraries(operator.call(make, *self.sizes))


@dataclass(frozen=True)
class Report:
    """What was found about a case."""

    fastest: str
    gain: float
    source: str
    made_in_ms: float
    text: str


def _measure_wrapper(wrapper: Any, arguments: list[Any]) -> Report:
    import cuop

    config = cuop.get_default_jit_config()
    config.optimization_level = "best"
    wrapper.set_jit_config(config)
    wrapper.enable_persistent_cache()
    wrapper.warmup(*arguments)
    found = wrapper.get_tuning_report()
    return Report(found.kernel, found.gain, found.source, found.made_in_ms, found.text)


def _measure_libraries(call: Callable[[], Any]) -> Report:
    import cuop

    found = cuop.tune_libraries(call)
    return Report(
        found["fastest"] or "library's own",
        found["gain"],
        found["source"] or "no choice",
        found["made_in_ms"],
        found["text"] or "no library has a choice\n",
    )


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

        free, _ = cuop.get_memory_info("cpu")
        if math.prod(shape) * _BYTES_A_NUMBER > free:  # which some systems promise, and then kill
            sizes = "x".join(map(str, shape))
            raise cuop.MemoryError(
                f"tune ops: there is no room for {sizes} numbers: {free} bytes are free"
            )
        values = self._random.standard_normal(shape)
        if self._dtype.startswith("complex"):
            values = values + 1j * self._random.standard_normal(shape)
        return cuop.tensor(values, self._dtype).to(self._device)


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
        raise typer.BadParameter(
            f"conv2d: a kernel of {kernel} does not fit an edge of {edge}", param_hint="--size"
        )
    return conv, [make.tensor(batch, inputs, edge, edge), make.tensor(batch, outputs, after, after)]


def _matmul_call(make: _Maker, *sizes: int) -> Callable[[], Any]:
    import cuop

    *batch, m, n, k = sizes
    a, b = make.tensor(*batch, m, k), make.tensor(*batch, k, n)
    return lambda: cuop.matmul(a, b)


def _conv2d_call(
    make: _Maker, batch: int, inputs: int, outputs: int, edge: int, kernel: int
) -> Callable[[], Any]:
    import cuop

    x, w = make.tensor(batch, inputs, edge, edge), make.tensor(outputs, inputs, kernel, kernel)
    return lambda: cuop.conv2d(x, w)


@dataclass(frozen=True)
class Operator:
    """How an operator's sizes are called, which are measured by default, and how it is called."""

    sizes: tuple[str, ...]
    defaults: tuple[tuple[int, ...], ...]
    prepare: Callable[..., tuple[Any, list[Any]]]
    call: Callable[..., Callable[[], Any]] | None = None
    """In the dtypes that have no wrapper, which a GPU's library takes."""
    library_dtypes: tuple[str, ...] = ()


_HALVES = ("float16", "bfloat16")
_COMPLEX = ("complex64", "complex128")


OPERATORS = {
    "gemm": Operator(
        ("M", "N", "K"),
        ((64, 64, 64), (256, 256, 256), (512, 512, 512)),
        _gemm,
        _matmul_call,
        _HALVES + _COMPLEX,
    ),
    "gemv": Operator(("M", "N"), ((256, 256), (2048, 2048)), _gemv),
    "matmul": Operator(
        ("BATCH", "M", "N", "K"), ((16, 64, 64, 64),), _matmul, _matmul_call, _HALVES + _COMPLEX
    ),
    "relu": Operator(("ROWS", "COLUMNS"), ((32, 32), (1024, 1024)), _map("Relu")),
    "softmax": Operator(("ROWS", "COLUMNS"), ((32, 32), (1024, 1024)), _map("Softmax")),
    "layernorm": Operator(("ROWS", "COLUMNS"), ((32, 32), (1024, 1024)), _layernorm),
    "batchnorm": Operator(("BATCH", "CHANNELS", "EDGE"), ((8, 16, 32),), _batchnorm),
    "conv2d": Operator(
        ("BATCH", "INPUTS", "OUTPUTS", "EDGE", "KERNEL"),
        ((4, 8, 16, 32, 3),),
        _conv2d,
        _conv2d_call,
        _HALVES,
    ),
}


def cases(
    operators: list[str], sizes: list[str], dtypes: Sequence[str], device: str = "cpu"
) -> list[Case]:
    """The cases that are asked for, of operators in OPERATORS; typer.BadParameter for what does not fit.

    Of the dtypes that only some operators have, those cases are left out whose operator was not
    named.
    """
    names = operators or list(OPERATORS)
    for name in names:
        for dtype in dtypes if operators else ():
            _check_dtype(name, dtype)
    if sizes and len(names) != 1:
        given = ", ".join(operators) or "none"
        raise typer.BadParameter(
            f"it needs the one operator that it is for, given: {given}", param_hint="--size"
        )
    for dtype in dtypes:
        if dtype not in _WRAPPED and device.startswith("cpu"):
            raise typer.BadParameter(
                f"{dtype} is a choice among a GPU's libraries, given is device {device}",
                param_hint="--dtype",
            )
    return [
        Case(name, shape, dtype)
        for name in names
        for shape in ([_shape(name, text) for text in sizes] or OPERATORS[name].defaults)
        for dtype in dtypes
        if dtype in _dtypes(name)
    ]


def _dtypes(name: str) -> tuple[str, ...]:
    return _WRAPPED + OPERATORS[name].library_dtypes


def _check_dtype(name: str, dtype: str) -> None:
    known = _dtypes(name)
    if dtype not in known:
        raise typer.BadParameter(
            f"{name}: there is no choice in {dtype}; known are {', '.join(known)}",
            param_hint="--dtype",
        )


def _shape(name: str, text: str) -> tuple[int, ...]:
    """The sizes in text such as 512x512x512."""
    wanted = OPERATORS[name].sizes
    parts = text.lower().split("x")
    if len(parts) != len(wanted) or not all(part.isdigit() and int(part) > 0 for part in parts):
        raise typer.BadParameter(
            f"'{text}' was given; {name} needs {'x'.join(wanted)}, each at least 1",
            param_hint="--size",
        )
    return tuple(int(part) for part in parts)
