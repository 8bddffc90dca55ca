"""The operations of the command line by name, as cuop.executor takes them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cuop.cli.operations import Options


@dataclass(frozen=True)
class TileCall:
    """How many arrays an operation takes, and make(options) -> cuop.executor.TileOperation."""

    fewest_inputs: int
    most_inputs: int
    make: Callable[[Options], Any]


def _plain(name: str, inputs: int) -> TileCall:
    return TileCall(inputs, inputs, lambda options: getattr(_executor(), name)())


def _transform(name: str) -> TileCall:
    def make(options: Options):
        axis = -1 if options.axis is None else options.axis
        return getattr(_executor(), name)(dim=axis, norm=options.norm)

    return TileCall(1, 1, make)


def _reduction(name: str) -> TileCall:
    return TileCall(
        1, 1, lambda options: getattr(_executor(), name)(options.axis, mode=options.mode)
    )


def _convolution(dimensions: int) -> TileCall:
    def make(options: Options):
        return _executor().conv((options.stride,) * dimensions, (options.padding,) * dimensions)

    return TileCall(2, 3, make)


def _executor():
    from cuop import executor

    return executor


TILE_CALLS = {
    "matmul": _plain("matmul", 2),
    "batch_matmul": _plain("batch_matmul", 2),
    "add": _plain("add", 2),
    "transpose": TileCall(1, 1, lambda options: _executor().transpose(options.dim0, options.dim1)),
    "fft": _transform("fft"),
    "ifft": _transform("ifft"),
    "rfft": _transform("rfft"),
    "irfft": _transform("irfft"),
    "fft2d": TileCall(1, 1, lambda options: _executor().fft2d(norm=options.norm)),
    **{name: _reduction(name) for name in ("sum", "mean", "max", "min")},
    "conv2d": _convolution(2),
    "conv3d": _convolution(3),
    "stencil": TileCall(
        1, 2, lambda options: _executor().stencil_pass(options.boundary, options.iterations)
    ),
    "jacobi": TileCall(
        2, 2,
        lambda options: _executor().jacobi_pass(
            options.dx, options.boundary, options.iterations, options.tol
        ),
    ),
}  # fmt: skip
#: One line of these that does not fit goes in several passes.
LINES = ("fft", "ifft", "rfft", "irfft")
