"""The operations of the command line by name, as cuop.executor takes them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import typer

from cuop.cli.operations import Options


@dataclass(frozen=True)
class TileCall:
    """How many arrays an operation takes, make(options) -> cuop.executor.TileOperation, and which of the
    options mean something to it."""

    fewest_inputs: int
    most_inputs: int
    make: Callable[[Options], Any]
    options: tuple[str, ...] = ()


def _plain(name: str, inputs: int) -> TileCall:
    return TileCall(inputs, inputs, lambda options: getattr(_executor(), name)())


def _transform(name: str) -> TileCall:
    def make(options: Options):
        axis = -1 if options.axis is None else options.axis
        return getattr(_executor(), name)(dim=axis, norm=options.norm)

    return TileCall(1, 1, make, ("axis", "norm"))


def _sum(name: str) -> TileCall:
    def make(options: Options):
        return getattr(_executor(), name)(options.axis, mode=options.mode)

    return TileCall(1, 1, make, ("axis", "mode"))


def _extreme(name: str) -> TileCall:
    return TileCall(1, 1, lambda options: getattr(_executor(), name)(options.axis), ("axis",))


def _convolution(dimensions: int) -> TileCall:
    def make(options: Options):
        return _executor().conv((options.stride,) * dimensions, (options.padding,) * dimensions)

    return TileCall(2, 3, make, ("stride", "padding"))


def _executor():
    from cuop import executor

    return executor


TILE_CALLS = {
    "matmul": _plain("matmul", 2),
    "batch_matmul": _plain("batch_matmul", 2),
    "add": _plain("add", 2),
    "transpose": TileCall(
        1, 1, lambda options: _executor().transpose(options.dim0, options.dim1), ("dim0", "dim1")
    ),
    "fft": _transform("fft"),
    "ifft": _transform("ifft"),
    "rfft": _transform("rfft"),
    "irfft": _transform("irfft"),
    "fft2d": TileCall(1, 1, lambda options: _executor().fft2d(norm=options.norm), ("norm",)),
    **{name: _sum(name) for name in ("sum", "mean")},
    **{name: _extreme(name) for name in ("max", "min")},
    "conv2d": _convolution(2),
    "conv3d": _convolution(3),
    "stencil": TileCall(
        1, 2, lambda options: _executor().stencil_pass(options.boundary, options.iterations),
        ("boundary", "iterations"),
    ),
    "jacobi": TileCall(
        2, 2,
        lambda options: _executor().jacobi_pass(
            options.dx, options.boundary, options.iterations, options.tol
        ),
        ("boundary", "iterations", "dx", "tol"),
    ),
}  # fmt: skip
#: One line of these that does not fit goes in several passes.
LINES = ("fft", "ifft", "rfft", "irfft")


def check_options(context: typer.Context, name: str, taken: tuple[str, ...]) -> None:
    """typer.BadParameter for options on the command line that are of other operations than `name`."""
    special = {option for call in TILE_CALLS.values() for option in call.options} | {"dims"}
    known = [parameter for parameter in context.params if parameter in special]
    for option in known:
        is_given = context.get_parameter_source(option).name == "COMMANDLINE"
        if is_given and option not in taken:
            own = [f"--{each}" for each in known if each in taken]
            takes = ", ".join(own) if own else "none of its own"
            raise typer.BadParameter(f"{name} has no option --{option}; it takes {takes}")
