"""Templates filled in and written: one HTML file that needs nothing beside itself."""

from collections.abc import Callable
from importlib.resources import files
from os import PathLike

from cuop.files import replace_file


def write_page(
    path: str | PathLike,
    who: str,
    package: str,
    template: str,
    filters: dict[str, Callable],
    **values,
) -> None:
    """Fill in the template of `package` and write it to `path`; FileError "who: ..." where that
    cannot be. Templates extend "page.html.j2" and import "timeline.html.j2"; they have `bytes`,
    `seconds` and the given filters.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    def load(name: str) -> str:
        folder = package if name == template else "cuop.report"
        return (files(folder) / name).read_text(encoding="utf-8")

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, loader=FunctionLoader(load)
    )
    environment.filters.update(bytes=format_bytes, seconds=format_seconds, **filters)
    text = environment.get_template(template).render(**values)
    with replace_file(path, who) as file:
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
