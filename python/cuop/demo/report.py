"""The report: one HTML file that needs nothing beside itself."""

import base64
import io
import platform
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from cuop.demo.step import Picture, Result
from cuop.demo.timeline import Timeline


def write_report(path: Path, results: Sequence[Result], timeline: Timeline, header: dict) -> None:
    """Render the results, their pictures and the ranks' time line to `path`."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters.update(png=_data_url, bytes=format_bytes, seconds=format_seconds)
    template = environment.from_string(
        (files("cuop.demo") / "report.html.j2").read_text(encoding="utf-8")
    )
    text = template.render(
        results=results, timeline=timeline, header=header, machine=platform.platform()
    )
    from cuop.files import replace_file

    with replace_file(path, "report") as file:
        file.write(text.encode())


def format_bytes(count: int) -> str:
    """1536 -> '1.5 KiB'."""
    value, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.0f} {units[0]}" if units[0] == "B" else f"{value:.1f} {units[0]}"


def format_seconds(seconds: float) -> str:
    """0.0015 -> '1.5 ms'."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _data_url(picture: Picture) -> str:
    from matplotlib.image import imsave

    pixels = np.asarray(picture.pixels, dtype=float)
    low, high = picture.limits or (float(pixels.min()), float(pixels.max()))
    buffer = io.BytesIO()
    imsave(
        buffer, pixels, cmap="gray", vmin=low, vmax=high if high > low else low + 1, format="png"
    )
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
