"""`cuop run`: one operation on .npy files, on as many ranks as wanted."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from cuop import npy
from cuop.cli import console
from cuop.cli.operations import OPERATIONS, Job, Operation, Options
from cuop.cli.ranks import on_ranks
from cuop.errors import FileError
from cuop.files import check_writable

Name = StrEnum("Name", {name: name for name in OPERATIONS})


def run(
    operation: Annotated[Name, typer.Argument(metavar="OP", help=", ".join(OPERATIONS))],
    inputs: Annotated[list[Path], typer.Argument(metavar="IN.npy [IN2.npy]")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="OUT.npy")],
    ranks: Annotated[
        int | None, typer.Option(min=1, help="Ranks as threads of this process; default 1.")
    ] = None,
    axis: Annotated[
        int | None, typer.Option(help="fft: axis (default -1); sum, mean: axis (default all).")
    ] = None,
    dim0: Annotated[int, typer.Option(help="transpose: first axis.")] = 0,
    dim1: Annotated[int, typer.Option(help="transpose: second axis.")] = 1,
    norm: Annotated[str, typer.Option(help="fft, fft2d: backward, ortho or forward.")] = "backward",
    mode: Annotated[str, typer.Option(help="sum, mean: plain, compensated or exact.")] = "plain",
    stride: Annotated[int, typer.Option(help="conv2d: pixels between windows.")] = 1,
    padding: Annotated[int, typer.Option(help="conv2d: zeros on each side.")] = 0,
    boundary: Annotated[str, typer.Option(help="stencil, jacobi: zero or periodic.")] = "zero",
    iterations: Annotated[int, typer.Option(min=0, help="stencil, jacobi: sweeps.")] = 1,
    dx: Annotated[float, typer.Option(help="jacobi: grid spacing.")] = 1.0,
    tol: Annotated[
        float, typer.Option(help="jacobi: stop when the update's 2-norm is below.")
    ] = 1e-6,
) -> None:
    """Run OP on memory-mapped .npy files and write the result as .npy.

    matmul A B; fft X; fft2d X; sum X; mean X; conv2d IMAGES WEIGHT; stencil GRID [KERNEL];
    jacobi GRID RHS; transpose X. IMAGES is [N,C,H,W], WEIGHT [O,C,h,w]; KERNEL defaults to the
    5-point Laplacian. The output is complete under its name or it is not there.
    """
    chosen = OPERATIONS[operation.value]
    if not chosen.fewest_inputs <= len(inputs) <= chosen.most_inputs:
        wanted = " or ".join(str(n) for n in range(chosen.fewest_inputs, chosen.most_inputs + 1))
        raise typer.BadParameter(f"{operation.value} takes {wanted} input files, not {len(inputs)}")
    options = Options(axis, dim0, dim1, norm, mode, stride, padding, boundary, iterations, dx, tol)
    on_ranks(lambda comm: _run_rank(comm, operation.value, inputs, output, options), ranks)


def _run_rank(comm, name: str, inputs: list[Path], output: Path, options: Options) -> None:
    """Rank 0 owns the files and the bar; the others take part in the work."""
    operation: Operation = OPERATIONS[name]
    if comm.rank != 0:
        arrays = _open_inputs(comm, inputs, output)
        operation.run(Job(comm, arrays, options, lambda fraction: None))
        return
    with console.stages(3) as bar:
        bar.begin("reading headers")
        arrays = _open_inputs(comm, inputs, output)
        bar.begin(f"{name} on {comm.size} ranks")
        result = np.asarray(operation.run(Job(comm, arrays, options, bar.at)))
        for array, path in zip(arrays, inputs, strict=True):
            npy.check_whole(array, path)
        bar.begin(f"writing {output.name}")
        npy.save(output, result, bar.at)
    console.console.print(f"{output}: {result.shape} {result.dtype}", markup=False)


def _open_inputs(comm, inputs: list[Path], output: Path) -> list:
    """The mapped files on rank 0, None elsewhere; an error on rank 0 is one on every rank."""
    arrays, problem = [None] * len(inputs), None
    if comm.rank == 0:
        try:
            check_writable(output, "save")
            arrays = [npy.open_npy(path) for path in inputs]
        except FileError as error:
            problem = error
    problem = comm.broadcast(problem)
    if problem is not None:
        raise problem
    return arrays
