"""`cuop bench`: the table of peers, measured here and now."""

import datetime
import importlib.util
import os
import platform
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from cuop.bench.measure import Roofs, Row
from cuop.cli import console, values
from cuop.files import check_writable


def bench(
    suite: Annotated[
        str, values.choice_option("--suite", "Which cases to run, cpu or gpu.", ("cpu", "gpu"))
    ] = "cpu",
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
    from cuop.bench import table

    rows, names, about = (_run_cpu if suite == "cpu" else _run_gpu)(only)
    if not rows:
        known = ", ".join(dict.fromkeys(names))
        raise typer.BadParameter(
            f"no case of the suite {suite} has {only!r} in its name; there are {known}",
            param_hint="--only",
        )
    console.table(f"cuop bench --suite {suite}", table.COLUMNS, [table.cells(r) for r in rows])
    if output is not None:
        table.write(output, rows, {"title": f"cuop bench --suite {suite}", **about})
    if not all(row.is_reached for row in rows):
        raise typer.Exit(1)


def _announce(case) -> None:
    console.errors.print(f"measuring {case.name} {case.precision}", markup=False)


# The rows of the cases that are asked for, the names of all, and what they were measured on.
def _run_cpu(only: str) -> tuple[list[Row], list[str], dict[str, str]]:
    _use_numpys_blas()
    import cuop
    from cuop.bench import cpu_suite, processes
    from cuop.bench.measure import measure, measure_roofs

    cuop.set_device("cpu")  # also where a GPU is the default
    roofs = measure_roofs()
    rows, names = [], []
    for case in cpu_suite.cases():
        names.append(case.name)
        if only in case.name:
            _announce(case)
            rows += measure(case, roofs)
    convolutions = processes.conv_rows(roofs)
    rows += [row for row in convolutions if only in row.name]
    if only in processes.IMPORT:
        rows.append(processes.import_row())
    names += [*(row.name for row in convolutions), processes.IMPORT]
    return rows, names, _about_cpu(roofs)


def _run_gpu(only: str) -> tuple[list[Row], list[str], dict[str, str]]:
    _require_gpu_peers()
    from cuop.bench import gpu_measure, gpu_suite, processes

    gpu_suite.pin_precision()
    roofs = gpu_suite.measure_roofs()
    libraries = {name: make() for name, make in gpu_measure.LIBRARIES.items()}
    rows, names = [], []
    for case in gpu_suite.cases():
        names.append(case.name)
        if only in case.name:
            _announce(case)
            rows += gpu_measure.measure(
                case, libraries, roofs.get(case.precision, roofs["float32"])
            )
    first_uses = processes.first_use_rows()
    rows += [row for row in first_uses if only in row.name]
    names += [row.name for row in first_uses]
    return rows, names, _about_gpu(roofs)


def _require_gpu_peers() -> None:
    """DeviceError without a GPU, ExecutionError without the libraries that are measured beside."""
    import cuop

    if cuop.device_count("cuda") == 0:
        cuop.empty(1, device="cuda")  # says why there is none
    absent = [name for name in ("torch", "cupy") if importlib.util.find_spec(name) is None]
    if absent:
        raise cuop.ExecutionError(
            f"bench: the suite gpu compares with {' and '.join(absent)}, which cannot be imported; "
            "install them, or run --suite cpu"
        )


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


def _command() -> dict[str, str]:
    return {
        "command": shlex.join(["cuop", *sys.argv[1:]]),
        "date": datetime.date.today().isoformat(),
    }


def _about_gpu(roofs: dict[str, Roofs]) -> dict[str, str]:
    import cupy
    import torch

    import cuop

    return {
        **_command(),
        "device": cuop.device_description("cuda"),
        "versions": f"cuOP {cuop.__version__}, PyTorch {torch.__version__}, CuPy "
        f"{cupy.__version__}, CUDA {torch.version.cuda}, Python {platform.python_version()}",
        "precision": "float32 products and convolutions in full float32 (no TF32) for everybody",
        "kinds": "G: the GPU's time of a call within a CUDA graph; E: a call among many, one wait at "
        "the end; S: a call and its wait",
        "roofs": ", ".join(
            [f"{roofs['float32'].bandwidth / 1e9:.0f} GB/s copy"]
            + [f"{roof.flops / 1e12:.1f} TFLOP/s {name}" for name, roof in roofs.items()]
        ),
    }


def _about_cpu(roofs: Roofs) -> dict[str, str]:
    import numpy
    import scipy

    import cuop

    return {
        **_command(),
        "processor": cuop.device_description("cpu"),
        "BLAS": f"{cuop.blas_info()['version']}, kernels {cuop.blas_info()['core']}, "
        + ("NumPy's own" if "numpy.libs" in cuop.blas_info()["path"] else "not NumPy's own"),
        "versions": f"cuOP {cuop.__version__}, NumPy {numpy.__version__}, SciPy {scipy.__version__}, "
        f"Python {platform.python_version()}",
        "roofs": f"{roofs.bandwidth / 1e9:.1f} GB/s copy, {roofs.flops / 1e9:.0f} GFLOP/s float32",
    }
