"""Fusion for Python functions: the decorator `fuse`, and `explain`, which says what was fused."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Generator
from typing import Any, ParamSpec, TypeVar

from cuop._arguments import check_callable, refused
from cuop._core import FusedGroup, _fusion_text, _FusionReports, fused

__all__ = ["Explanation", "explain", "fuse"]

P = ParamSpec("P")
R = TypeVar("R")


def fuse(function: Callable[P, R]) -> Callable[P, R]:
    """Runs the function inside `cuop.fused()`, so that its elementwise work becomes few passes.

    The arguments must not be changed by other libraries while it runs. Of a generator or coroutine
    each step, up to its next `yield` or wait, is fused by itself. Raises DTypeError for something
    that cannot be called, and for an async generator.
    """
    check_callable(function, "fuse", "function")
    if inspect.isasyncgenfunction(function):
        raise refused(function, "fuse", "function", "a function that is no async generator")
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def fused_waits(*args: P.args, **kwargs: P.kwargs) -> Any:
            return await _Steps(function(*args, **kwargs))

        return fused_waits  # type: ignore[return-value]
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def fused_steps(*args: P.args, **kwargs: P.kwargs) -> Generator[Any, Any, Any]:
            return (yield from _Steps(function(*args, **kwargs)))

        return fused_steps  # type: ignore[return-value]

    @functools.wraps(function)
    def run_fused(*args: P.args, **kwargs: P.kwargs) -> R:
        with fused():
            return function(*args, **kwargs)

    return run_fused


class _Steps(Generator[Any, Any, Any]):
    """A generator or coroutine, each of whose steps is fused; what its caller does between is not."""

    def __init__(self, steps: Generator[Any, Any, Any] | Coroutine[Any, Any, Any]) -> None:
        self._steps = steps

    def __await__(self) -> Generator[Any, Any, Any]:
        return self

    def send(self, value: Any) -> Any:
        with fused():
            return self._steps.send(value)

    def throw(self, *error: Any) -> Any:
        with fused():
            return self._steps.throw(*error)


class Explanation:
    """What `explain` found: the groups in the order of their running, and the bytes they saved.

    Of JIT wrappers that were called it tells the kernels, and what of their configurations has no
    effect on the device.
    """

    groups: list[FusedGroup]
    """One for each pass over memory: its operations, arrays, bytes, and why it ended."""
    wrappers: list[str]
    """One line for each call of a JIT wrapper: 'JITReluFloat on cpu: tiled'."""

    def __init__(self, groups: list[FusedGroup], wrappers: list[str]) -> None:
        self.groups = groups
        self.wrappers = wrappers

    @property
    def unfused_bytes(self) -> int:
        """Bytes that the groups would move op by op, each reading and writing its arrays."""
        return sum(group.unfused_bytes for group in self.groups)

    @property
    def fused_bytes(self) -> int:
        """Bytes that the groups moved."""
        return sum(group.fused_bytes for group in self.groups)

    @property
    def saved_bytes(self) -> int:
        """unfused_bytes - fused_bytes."""
        return self.unfused_bytes - self.fused_bytes

    def __str__(self) -> str:
        if not self.wrappers:
            return _fusion_text(self.groups)
        lines = "\n".join(self.wrappers) + "\n"
        return lines + _fusion_text(self.groups) if self.groups else lines

    __repr__ = __str__


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """Runs `function(*args, **kwargs)` fused and says what was fused, where it was cut, and why.

    Each group tells its operations, its arrays and the bytes it moved against op by op. With
    `set_kernel_fusion(False)` nothing is fused and there are no groups. Raises DTypeError for
    something that cannot be called.
    """
    check_callable(function, "explain", "function")
    reports = _FusionReports()
    with reports:
        with fused():
            result = function(*args, **kwargs)  # held to the end, as a caller would
        groups, wrappers = reports.groups, reports.notes
    del result
    return Explanation(groups, wrappers)
