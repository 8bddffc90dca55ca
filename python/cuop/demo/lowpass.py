"""Step a: a Gaussian low-pass filter by the pencil 2-D FFT."""

import numpy as np

from cuop.demo.data import photograph
from cuop.demo.step import Context, Picture, Result, relative_error

TITLE = "Low-pass filter"
_CUTOFF = 0.06  # cycles a pixel


def run(ctx: Context) -> tuple:
    """Transform, damp high frequencies, and transform again.

    Two forward transforms are the identity up to a reflection, which `check` undoes.
    """
    from cuop import dist

    image = photograph() if ctx.is_root else None
    gain = ctx.scatter(_gain(image.shape) if ctx.is_root else None)
    spectrum = ctx.call(dist.fft2d_pencil, ctx.scatter(image))
    damped = ctx.call(dist.multiply, spectrum, gain)
    reflected = ctx.call(dist.fft2d_pencil, damped, norm="forward")
    return image, ctx.gather(reflected)


def check(ctx: Context, image: np.ndarray, reflected: np.ndarray) -> Result:
    """Beside numpy.fft."""
    filtered = np.roll(reflected.real[::-1, ::-1], 1, axis=(0, 1))
    oracle = np.fft.ifft2(np.fft.fft2(image) * _gain(image.shape)).real
    return ctx.result(
        TITLE,
        what="The photograph's frequencies above the cutoff are damped by a Gaussian.",
        error=relative_error(filtered, oracle),
        tolerance=1e-12,
        oracle="numpy.fft",
        pictures=[Picture("before", image, (0, 1)), Picture("after", filtered, (0, 1))],
    )


def _gain(shape: tuple[int, int]) -> np.ndarray:
    rows, columns = (np.fft.fftfreq(n) for n in shape)
    return np.exp(-(rows[:, None] ** 2 + columns**2) / (2 * _CUTOFF**2))
