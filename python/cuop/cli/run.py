"""`cuop run`: one operation on arrays in files, on as many ranks as wanted."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from cuop import npy
from cuop._arguments import MOST_RANKS
from cuop.array_files import ArrayFile, array_file
from cuop.cli import console, values
from cuop.cli.inputs import check_whole, open_inputs
from cuop.cli.operations import OPERATIONS, Job, Operation, Options
from cuop.cli.ranks import on_ranks
from cuop.cli.tile_operations import TILE_CALLS, check_options
from cuop.cli.tiled import Tiled


def run(
    context: typer.Context,
    operation: Annotated[
        str,
        typer.Argument(metavar="OP", help=", ".join(OPERATIONS), parser=values.one_of(OPERATIONS)),
    ],
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="IN [IN2]", help="x.npy, or a tensor of a file: model.safetensors:NAME."
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="OUT.npy")],
    ranks: Annotated[
        int | None,
        values.whole_option("Ranks as threads of this process; default 1.", 1, MOST_RANKS),
    ] = None,
    axis: Annotated[
        int | None,
        values.whole_option(
            "fft, ifft, rfft, irfft: axis (default -1); sum, mean: axis (default all)."
        ),
    ] = None,
    dim0: values.Dim0 = 0,
    dim1: values.Dim1 = 1,
    norm: Annotated[
        str,
        values.choice_option(
            "--norm", "fft, ..., fft2d: backward, ortho or forward.", values.NORMS
        ),
    ] = "backward",
    mode: values.Mode = "plain",
    stride: Annotated[int, values.whole_option("conv2d: pixels between windows.", 1)] = 1,
    padding: Annotated[int, values.whole_option("conv2d: zeros on each side.", 0)] = 0,
    boundary: values.Boundary = "zero",
    iterations: Annotated[int, values.whole_option("stencil, jacobi: sweeps.", 0)] = 1,
    dx: Annotated[float, values.real_option("jacobi: grid spacing.", above=0)] = 1.0,
    tol: Annotated[
        float, values.real_option("jacobi: stop when the update's 2-norm is below.")
    ] = 1e-6,
    memory_limit: Annotated[
        int | None,
        values.size_option(
            "2G, 500MB, ...: make the result in tiles that take no more, on each rank's device "
            "or together on the host; files may be larger than memory."
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Keep what a run that is cut off has done beside OUT, its passes and tiles, and go on "
            "with it the next time.",
        ),
    ] = False,
) -> None:
    """Run OP on memory-mapped .npy and .safetensors files and write the result as .npy.

    matmul A B; fft, ifft, rfft, irfft, fft2d X; sum X; mean X; conv2d IMAGES WEIGHT; stencil GRID [KERNEL];
    jacobi GRID RHS; transpose X. IMAGES is [N,C,H,W], WEIGHT [O,C,h,w]; KERNEL defaults to the
    5-point Laplacian. The output is complete under its name or it is not there.
    """
    chosen = OPERATIONS[operation]
    if not chosen.fewest_inputs <= len(inputs) <= chosen.most_inputs:
        wanted = " or ".join(str(n) for n in range(chosen.fewest_inputs, chosen.most_inputs + 1))
        raise typer.BadParameter(f"{operation} takes {wanted} input files, not {len(inputs)}")
    check_options(context, operation, TILE_CALLS[operation].options)
    files = [array_file(text) for text in inputs]
    options = Options(axis, dim0, dim1, norm, mode, stride, padding, boundary, iterations, dx, tol)
    if memory_limit is not None or resume:
        Tiled(operation, files, output, options, memory_limit, resume).run(ranks)
        return
    on_ranks(lambda comm: _run_rank(comm, operation, files, output, options), ranks)


def _run_rank(comm, name: str, inputs: list[ArrayFile], output: Path, options: Options) -> None:
    """Rank 0 owns the files and the bar; the others take part in the work."""
    operation: Operation = OPERATIONS[name]
    if comm.rank != 0:
        arrays = open_inputs(comm, inputs, output, name, options)
        operation.run(Job(comm, arrays, options, lambda fraction: None))
        return
    with console.stages(3) as bar:
        bar.begin("reading headers")
        arrays = open_inputs(comm, inputs, output, name, options)
        bar.begin(f"{name} on {comm.size} ranks")
        result = np.asarray(operation.run(Job(comm, arrays, options, bar.at)))
        check_whole(arrays, inputs)
        bar.begin(f"writing {output.name}")
        npy.save(output, result, bar.at)
    console.console.print(f"{output}: {result.shape} {result.dtype}", markup=False)
