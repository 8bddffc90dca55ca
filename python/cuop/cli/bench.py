"""`cuop bench`: the table of peers, measured here and now."""

import datetime
import os
import platform
import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cuop.cli import console
from cuop.files import check_writable


class Suite(StrEnum):
    """The suites that can be run."""

    cpu = "cpu"


def bench(
    suite: Annotated[Suite, typer.Option(help="Which cases to run.")] = Suite.cpu,
    only: Annotated[str, typer.Option(help="Only cases whose name contains this.")] = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="TABLE.md", help="Also write the table and its JSON."
        ),
    ] = None,
) -> None:
    """Run the benchmark cases beside their peers and print ratios, floors and errors.

    Exit code 1 when a case misses its goal.
    """
    if output is not None:
        check_writable(output, "bench")
    _use_numpys_blas()
    from cuop.bench import cpu_suite, processes, table
    from cuop.bench.measure import measure, measure_roofs

    roofs = measure_roofs()
    rows = []
    for case in cpu_suite.cases():
        if only in case.name:
            console.errors.print(f"measuring {case.name} {case.precision}", markup=False)
            rows += measure(case, roofs)
    rows += [row for row in processes.conv_rows(roofs) if only in row.name]
    if only in "import":
        rows.append(processes.import_row())
    console.table(
        f"cuop bench --suite {suite.value}", table.COLUMNS, [table.cells(r) for r in rows]
    )
    if output is not None:
        table.write(output, rows, _about(suite, roofs))
    if not all(row.is_reached for row in rows):
        raise typer.Exit(1)


def _use_numpys_blas() -> None:
    """Products are compared on one BLAS: the one that NumPy brings, when it brings one.

    cuOP has read its environment by now, so the command starts once more in one that names it.
    """
    import numpy

    folder = Path(numpy.__file__).parent.parent / "numpy.libs"
    libraries = sorted(folder.glob("*openblas*"))
    if libraries and "CUOP_BLAS_LIBRARY" not in os.environ:
        os.environ["CUOP_BLAS_LIBRARY"] = str(libraries[-1])
        os.execv(sys.executable, [sys.executable, *sys.argv])


def _about(suite: Suite, roofs) -> dict[str, str]:
    import numpy
    import scipy

    import cuop

    return {
        "title": f"cuop bench --suite {suite.value}",
        "command": shlex.join(["cuop", *sys.argv[1:]]),
        "date": datetime.date.today().isoformat(),
        "processor": cuop.device_description("cpu"),
        "BLAS": f"{cuop.blas_info()['version']}, kernels {cuop.blas_info()['core']}, "
        + ("NumPy's own" if "numpy.libs" in cuop.blas_info()["path"] else "not NumPy's own"),
        "versions": f"cuOP {cuop.__version__}, NumPy {numpy.__version__}, SciPy {scipy.__version__}, "
        f"Python {platform.python_version()}",
        "roofs": f"{roofs.bandwidth / 1e9:.1f} GB/s copy, {roofs.flops / 1e9:.0f} GFLOP/s float32",
    }
