"""Kernels of your own: CUDA C++ compiled on first use, cached on disk, tuned over configurations."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cuop._arguments import as_integer, integer, refused
from cuop._core import _UserKernel
from cuop.errors import DTypeError, ExecutionError

__all__ = ["Kernel", "ceil_div", "kernel"]

Axes = int | Sequence[int]
Launch = Axes | Callable[[dict[str, Any]], Axes]


def ceil_div(a: int, b: int) -> int:
    """How many blocks of `b` hold `a` elements."""
    return -(-a // b)


class Kernel:
    """A kernel of your own, made by `kernel`; call it with its arguments, a grid and a block."""

    def __init__(
        self,
        source: str,
        name: str,
        configs: Sequence[Mapping[str, Any]] | None = None,
        key: Sequence[str] = (),
        options: Sequence[str] = (),
    ) -> None:
        who = f"kernel {name}"
        for value, what in ((source, "source"), (name, "name")):
            if not isinstance(value, str):
                raise refused(value, "kernel", what, "a string")
        for texts, what in ((key, "key"), (options, "options")):
            if not _is_list(texts) or not all(isinstance(text, str) for text in texts):
                raise refused(texts, who, what, "a list of strings")
        if configs is not None and not _is_list(configs):
            raise refused(configs, who, "configs", "a list of dicts of macros")
        self._configs = [_checked(config, who) for config in configs or [{}]]
        macros = [{n: _macro(v, who, n) for n, v in config.items()} for config in self._configs]
        self._kernel = _UserKernel(source, name, macros, list(key), list(options))
        self._name = name

    @property
    def name(self) -> str:
        """The function's name."""
        return self._name

    @property
    def configs(self) -> list[dict[str, Any]]:
        """The configurations, the default first."""
        return [dict(config) for config in self._configs]

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters, as the source has them."""
        return self._kernel.parameters

    def __call__(
        self, *arguments: Any, grid: Launch, block: Launch = 256, shared_bytes: int = 0
    ) -> None:
        """Starts the kernel on the current stream, in the best configuration for its key.

        `grid` (blocks) and `block` (threads of one) are an int or up to three, or a function of a
        dict with the configuration and the arguments by name that returns one. The first call of a
        key tries the configurations on copies of the tensors.

        Raises ExecutionError, DTypeError, DeviceError or OverflowError, naming the argument, and
        CompilationError with the compiler's log.
        """
        self._kernel.launch(list(arguments), self._launches(arguments, grid, block, shared_bytes))

    def best_config(
        self, *arguments: Any, grid: Launch, block: Launch = 256, shared_bytes: int = 0
    ) -> dict[str, Any]:
        """The configuration that a call with these arguments takes; the tensors are only read."""
        launches = self._launches(arguments, grid, block, shared_bytes)
        return dict(self._configs[self._kernel.choose(list(arguments), launches)])

    def last_search(self) -> str:
        """What the last search found, one line a configuration; "" before the first."""
        return self._kernel.last_search()

    def compile(self, arch: str, config: Mapping[str, Any] | None = None) -> bytes:
        """The binary for an architecture such as 'sm_90a', also kept on disk; needs no GPU."""
        who = f"kernel {self._name}"
        wanted = self._configs[0] if config is None else _checked(config, who)
        if wanted not in self._configs:
            raise ExecutionError(f"{who}: {wanted} is none of the configurations")
        return self._kernel.compile(self._configs.index(wanted), arch)

    def _launches(
        self, arguments: Sequence[Any], grid: Launch, block: Launch, shared_bytes: int
    ) -> Callable[[int], tuple[tuple[int, ...], tuple[int, ...], int]]:
        who = f"kernel {self._name}"
        named = dict(zip(self._kernel.parameters, arguments, strict=False))

        def launch_for(config: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
            about = {**named, **self._configs[config]}
            return (
                _axes(grid(about) if callable(grid) else grid, who, "grid"),
                _axes(block(about) if callable(block) else block, who, "block"),
                integer(shared_bytes, who, "shared_bytes"),
            )

        return launch_for


def kernel(
    source: str,
    name: str,
    configs: Sequence[Mapping[str, Any]] | None = None,
    key: Sequence[str] = (),
    options: Sequence[str] = (),
) -> Kernel:
    """A kernel of your own from CUDA C++ source.

    `source` declares `extern "C" __global__ void name(...)`, whose parameters are numbers and
    pointers to them. Each of `configs` is a dict of macros that the source is compiled with; the
    first is the default. For each combination of the parameters that `key` names (the value of a
    number, the shape of a tensor) the configurations are tried once: one that gives another result
    than the default, or fails, is out, and one that is faster beyond doubt is taken, now and by
    later processes. `options` are NVRTC's, such as '--use_fast_math'.

    Nothing is compiled before the first call. Raises CompilationError when the source has no such
    kernel, or a configuration, a key or an option makes no sense.
    """
    return Kernel(source, name, configs, key, options)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _checked(config: Any, who: str) -> dict[str, Any]:
    if not isinstance(config, Mapping):
        raise refused(config, who, "a configuration", "a dict of macros")
    for name in config:
        if not isinstance(name, str):
            raise refused(name, who, "the name of a macro", "a string")
    return dict(config)


def _macro(value: Any, who: str, name: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, numbers.Integral)):
        return str(int(value))
    if isinstance(value, numbers.Real) and math.isfinite(value):
        return str(float(value))
    raise refused(value, who, f"the macro {name}", "a finite number or a string")


def _axes(value: Any, who: str, what: str) -> tuple[int, ...]:
    """Three sizes of an int or up to three of them."""
    sizes = value if isinstance(value, (tuple, list)) else (value,)

    def refusal() -> DTypeError:
        return refused(value, who, what, "an integer or up to three")

    if not 1 <= len(sizes) <= 3:
        raise refusal()
    numbers = tuple(as_integer(size, refusal) for size in sizes)
    return numbers + (1,) * (3 - len(numbers))
