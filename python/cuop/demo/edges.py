"""Step d: edges of the photograph by conv2d with the Sobel kernels."""

import numpy as np

from cuop.demo.data import photograph
from cuop.demo.step import Context, Picture, Result, relative_error

TITLE = "Edges"
_SOBEL = np.array([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]])
_STRIP = 51  # 510 inner rows are ten strips


def run(ctx: Context) -> tuple:
    """Horizontal and vertical gradients of ten strips, a batch split over the ranks."""
    from cuop import dist

    image = photograph() if ctx.is_root else None
    strips = ctx.scatter(_strips(image) if ctx.is_root else None)
    weight = ctx.scatter(np.stack([_SOBEL, _SOBEL.T])[:, None] if ctx.is_root else None)
    return image, ctx.gather(ctx.call(dist.conv, strips, weight, padding=(0, 1)))


def check(ctx: Context, image: np.ndarray, gradients: np.ndarray) -> Result:
    """Beside scipy.ndimage on the whole photograph."""
    from scipy.ndimage import correlate

    ours = np.stack([np.concatenate(list(gradients[:, k])) for k in (0, 1)])
    oracle = np.stack([correlate(image, k, mode="constant")[1:-1] for k in (_SOBEL, _SOBEL.T)])
    return ctx.result(
        TITLE,
        what="Sobel gradients of the photograph, cut in strips that are convolved as a batch.",
        error=relative_error(ours, oracle),
        tolerance=1e-12,
        oracle="scipy.ndimage.correlate",
        pictures=[
            Picture("before", image, (0, 1)),
            Picture("gradient magnitude", np.hypot(*ours), (0, 2)),
        ],
    )


def _strips(image: np.ndarray) -> np.ndarray:
    """Overlapping strips [N, 1, h + 2, W] whose inner rows together are the image's inner rows."""
    tops = range(0, image.shape[0] - 2, _STRIP)
    return np.stack([image[top : top + _STRIP + 2] for top in tops])[:, None]
