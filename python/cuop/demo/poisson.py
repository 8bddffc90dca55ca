"""Step c: the photograph rebuilt from nothing but its Laplacian."""

import numpy as np

from cuop.demo.data import photograph
from cuop.demo.step import Context, Picture, Result, relative_error

TITLE = "Poisson"
_LAPLACIAN = np.array([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]])


def run(ctx: Context) -> tuple:
    """Take the 5-point Laplacian, then solve the Poisson problem with zero boundary."""
    from cuop import dist

    image = photograph() if ctx.is_root else None
    kernel = ctx.scatter(_LAPLACIAN if ctx.is_root else None)
    laplacian = ctx.call(dist.stencil_2d, ctx.scatter(image), kernel)
    nothing = ctx.scatter(np.zeros_like(image) if ctx.is_root else None)
    rebuilt, _ = ctx.call(dist.poisson_2d, nothing, laplacian)
    return image, ctx.gather(laplacian), ctx.gather(rebuilt)


def check(ctx: Context, image: np.ndarray, laplacian: np.ndarray, rebuilt: np.ndarray) -> Result:
    """Beside SciPy's Laplacian and the photograph that it was taken of."""
    from scipy.ndimage import correlate

    oracle = correlate(image, _LAPLACIAN, mode="constant")
    return ctx.result(
        TITLE,
        what="The photograph's Laplacian, and the solution of the Poisson problem with it as the "
        "right-hand side: the photograph again.",
        error=max(relative_error(laplacian, oracle), relative_error(rebuilt, image)),
        tolerance=1e-10,
        oracle="scipy.ndimage.correlate and the photograph itself",
        pictures=[
            Picture("before", image, (0, 1)),
            Picture("its Laplacian", laplacian, (-0.5, 0.5)),
            Picture("rebuilt", rebuilt, (0, 1)),
        ],
    )
