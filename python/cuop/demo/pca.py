"""Step e: principal components of handwritten digits by distributed products."""

import numpy as np

from cuop.demo.data import digits
from cuop.demo.step import Context, Picture, Result, relative_error

TITLE = "PCA of digits"
_COMPONENTS = 12


def run(ctx: Context) -> tuple:
    """Covariance, projection and reconstruction are distributed; 64 x 64 eigenvectors are not."""
    from cuop import dist

    rows = digits() if ctx.is_root else None
    centred = ctx.scatter(rows - rows.mean(axis=0) if ctx.is_root else None)
    covariance = ctx.gather(ctx.call(dist.matmul, centred.T, centred))
    basis = _leading_vectors(covariance) if ctx.is_root else None
    basis = ctx.scatter(basis)
    scores = ctx.call(dist.matmul, centred, basis)
    return rows, ctx.gather(ctx.call(dist.matmul, scores, basis.T))


def check(ctx: Context, rows: np.ndarray, approximation: np.ndarray) -> Result:
    """Beside the truncated singular value decomposition."""
    mean = rows.mean(axis=0)
    left, singular, right = np.linalg.svd(rows - mean, full_matrices=False)
    oracle = (left[:, :_COMPONENTS] * singular[:_COMPONENTS]) @ right[:_COMPONENTS]
    kept = (singular[:_COMPONENTS] ** 2).sum() / (singular**2).sum()
    return ctx.result(
        TITLE,
        what=f"{len(rows)} digits of 64 pixels, rebuilt from {_COMPONENTS} components, which keep "
        f"{kept:.0%} of the variance.",
        error=relative_error(approximation, oracle),
        tolerance=1e-10,
        oracle="numpy.linalg.svd",
        pictures=[
            Picture("before", _sheet(rows), (0, 1)),
            Picture("rebuilt", _sheet(approximation + mean), (0, 1)),
        ],
    )


def _leading_vectors(covariance: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.linalg.eigh(covariance)[1][:, : -_COMPONENTS - 1 : -1])


def _sheet(rows: np.ndarray, side: int = 12) -> np.ndarray:
    """The first side * side digits as one picture."""
    tiles = rows[: side * side].reshape(side, side, 8, 8)
    return tiles.transpose(0, 2, 1, 3).reshape(side * 8, side * 8)
