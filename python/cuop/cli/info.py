"""`cuop info`: what was found on this machine, and why not."""

from typing import Annotated

import typer

from cuop.cli import console


def info(
    environment: Annotated[
        bool, typer.Option("--env", help="Also list every environment variable.")
    ] = False,
) -> None:
    """Print processor, memory, BLAS, FFTW, oneDNN, MPI and CUDA libraries, or why one is absent."""
    import cuop

    console.console.print(f"cuOP {cuop.__version__}", markup=False)
    rows = [
        [part.name, "found" if part.is_found else "absent", part.detail]
        for part in cuop.system_info()
    ]
    console.table("on this machine", ["part", "state", "detail"], rows)
    if environment:
        columns = {"name": "variable", "alias": "also", "default": "default", "current": "current",
                   "what": "meaning"}  # fmt: skip
        rows = [[row[key] for key in columns] for row in cuop.env_table()]
        console.table("environment", list(columns.values()), rows)
