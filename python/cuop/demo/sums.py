"""Step f: a badly conditioned series summed plainly, compensated and exactly."""

import math

import numpy as np

from cuop.demo.data import hard_series
from cuop.demo.step import Context, Picture, Result

TITLE = "Sums"
_MODES = ("plain", "compensated", "exact")


def run(ctx: Context) -> tuple:
    """One series, three ways to sum it."""
    from cuop import dist

    series = hard_series() if ctx.is_root else None
    terms = ctx.scatter(series)
    return series, *(ctx.gather(ctx.call(dist.sum, terms, mode=mode)) for mode in _MODES)


def check(ctx: Context, series: np.ndarray, *sums: np.ndarray) -> Result:
    """The exact sum must be math.fsum's to the last bit."""
    oracle = math.fsum(series)
    errors = {mode: abs(float(value) - oracle) / abs(oracle) for mode, value in zip(_MODES, sums)}
    listed = ", ".join(f"{mode} {error:.1e}" for mode, error in errors.items())
    return ctx.result(
        TITLE,
        what=f"{len(series)} terms up to {np.abs(series).max():.0e} whose sum is {oracle:.3f}. "
        f"Relative errors: {listed}.",
        error=errors["exact"],
        tolerance=0.0,
        oracle="math.fsum, bit for bit",
        pictures=[Picture("logarithm of the first terms' size", _sizes(series))],
        note="The plain sum may be wrong here: it shows what the other two are for.",
    )


def _sizes(series: np.ndarray, side: int = 128) -> np.ndarray:
    return np.log10(np.abs(series[: side * side]).reshape(side, side))
