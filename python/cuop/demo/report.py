"""The report: one HTML file that needs nothing beside itself."""

import base64
import io
import platform
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cuop.demo.step import Picture, Result
from cuop.report.page import write_page
from cuop.report.timeline import Timeline


def write_report(path: Path, results: Sequence[Result], timeline: Timeline, header: dict) -> None:
    """Render the results, their pictures and the ranks' time line to `path`."""
    write_page(
        path,
        "report",
        "cuop.demo",
        "report.html.j2",
        {"png": _data_url},
        results=results,
        timeline=timeline,
        header=header,
        machine=platform.platform(),
    )


def _data_url(picture: Picture) -> str:
    from matplotlib.image import imsave

    pixels = np.asarray(picture.pixels, dtype=float)
    low, high = picture.limits or (float(pixels.min()), float(pixels.max()))
    buffer = io.BytesIO()
    imsave(
        buffer, pixels, cmap="gray", vmin=low, vmax=high if high > low else low + 1, format="png"
    )
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
