"""`cuop cache`: the compiled kernels on disk."""

import datetime
from typing import Annotated

import typer

from cuop.cli import console, values

application = typer.Typer(no_args_is_help=True, help="Look after the compiled GPU kernels on disk.")


@application.command("ls")
def ls() -> None:
    """List the kernels, the last used first."""
    from cuop import _core

    rows = [
        [
            row["name"],
            f"{row['bytes']}",
            f"{row['made_in_ms']:.1f}",
            datetime.datetime.fromtimestamp(row["used"]).isoformat(" "),
            row["key"][:16],
        ]
        for row in _core.kernel_cache_entries()
    ]
    console.table("compiled kernels", ["kernel", "bytes", "made in ms", "last used", "key"], rows)


@application.command("info")
def info() -> None:
    """Print where kernels are kept, how many, and whether the directory can be used."""
    from cuop import _core

    about, entries = _core.kernel_cache_info(), _core.kernel_cache_entries()
    rows = [
        ["directory", about["directory"]],
        ["state", about["problem"] or "usable"],
        ["kernels", f"{len(entries)}"],
        ["bytes", f"{sum(row['bytes'] for row in entries)} of at most {about['max_bytes']}"],
        ["compiling them took", f"{sum(row['made_in_ms'] for row in entries):.0f} ms"],
    ]
    console.table("kernel cache", ["", ""], rows)


@application.command("clear")
def clear() -> None:
    """Remove every kernel."""
    from cuop import _core

    _say(_core.kernel_cache_clear(), "removed")


@application.command("warm")
def warm(
    ops: Annotated[
        list[str] | None,
        typer.Argument(help="Operations, such as add, exp or sum; all by default."),
    ] = None,
    dtype: Annotated[
        list[str] | None,
        values.named_option(
            "--dtype",
            values.dtype,
            "Of the elements; float32, float16 and bfloat16 by default.",
        ),
    ] = None,
    arch: Annotated[
        str,
        typer.Option(help="What to compile for, such as sm_90a; this machine's GPU by default."),
    ] = "",
) -> None:
    """Compile kernels before they are needed; a GPU is not needed when --arch is given."""
    from cuop import _core

    _say(_core.kernel_cache_warm(ops or [], dtype or [], arch), "ready")


@application.command("export")
def export(file: Annotated[str, typer.Argument(help="The file to write.")]) -> None:
    """Write every kernel into one file."""
    from cuop import _core

    _say(_core.kernel_cache_export(file), f"written to {file}")


@application.command("import")
def import_(file: Annotated[str, typer.Argument(help="A file that export wrote.")]) -> None:
    """Take the kernels of a file. They are code: import only what you would run."""
    from cuop import _core

    _say(_core.kernel_cache_import(file), f"taken from {file}")


def _say(count: int, what: str) -> None:
    console.console.print(f"{count} kernel{'' if count == 1 else 's'} {what}", markup=False)
