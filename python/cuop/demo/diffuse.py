"""Step b: heat flow on the photograph by the distributed stencil."""

import numpy as np

from cuop.demo.data import photograph
from cuop.demo.step import Context, Picture, Result, relative_error

TITLE = "Diffusion"
_STEPS = 60
_RATE = 0.2
_KERNEL = np.array([[0, _RATE, 0], [_RATE, 1 - 4 * _RATE, _RATE], [0, _RATE, 0]])


def run(ctx: Context) -> tuple:
    """Explicit steps of the heat equation on a periodic grid."""
    from cuop import dist

    image = photograph() if ctx.is_root else None
    kernel = ctx.scatter(_KERNEL if ctx.is_root else None)
    options = {"boundary": "periodic", "iterations": _STEPS}
    return image, ctx.gather(ctx.call(dist.stencil_2d, ctx.scatter(image), kernel, **options))


def check(ctx: Context, image: np.ndarray, diffused: np.ndarray) -> Result:
    """Beside scipy.ndimage, step by step."""
    from scipy.ndimage import correlate

    oracle = image
    for _ in range(_STEPS):
        oracle = correlate(oracle, _KERNEL, mode="wrap")
    return ctx.result(
        TITLE,
        what=f"{_STEPS} explicit steps of the heat equation on a periodic grid.",
        error=relative_error(diffused, oracle),
        tolerance=1e-12,
        oracle="scipy.ndimage.correlate",
        pictures=[Picture("before", image, (0, 1)), Picture("after", diffused, (0, 1))],
    )
