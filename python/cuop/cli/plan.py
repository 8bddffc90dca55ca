"""`cuop plan`: what a call would move and compute, on machines one need not have."""

import re
from pathlib import Path
from typing import Annotated

import typer

from cuop._arguments import MOST_RANKS
from cuop.cli import console, values
from cuop.cli.machine_file import FIGURES, HOST_FIGURES, read_machine
from cuop.cli.operations import Options
from cuop.cli.plan_tiles import print_tiles
from cuop.cli.tile_operations import TILE_CALLS, check_options

#: The operations, and which of the options mean something to each.
_OPTIONS = {
    **{name: call.options for name, call in TILE_CALLS.items()},
    "tensordot": ("dims",),
    "einsum": (),
}


def plan(
    context: typer.Context,
    operation: Annotated[
        str,
        typer.Argument(metavar="OP", help=", ".join(_OPTIONS), parser=values.one_of(_OPTIONS)),
    ],
    shapes: Annotated[
        list[str],
        typer.Argument(
            metavar="SHAPES...",
            help="One of each array, as 4096x4096; of matmul M K N will do, of einsum the equation "
            "comes first. '' has no dimensions.",
        ),
    ],
    ranks: Annotated[
        int, values.whole_option("How many ranks, each with a device.", 1, MOST_RANKS)
    ] = 4,
    dtype: Annotated[
        str,
        values.named_option("--dtype", values.dtype, "Of the elements: float32, complex64, ..."),
    ] = "float32",
    axis: Annotated[
        int | None,
        values.whole_option("fft, ifft, rfft, irfft: axis (default -1); sum, ...: (default all)."),
    ] = None,
    dims: Annotated[int, values.whole_option("tensordot: dimensions that are summed over.", 0)] = 2,
    dim0: values.Dim0 = 0,
    dim1: values.Dim1 = 1,
    mode: values.Mode = "plain",
    stride: Annotated[int, values.whole_option("conv2d, conv3d: pixels between windows.", 1)] = 1,
    padding: Annotated[int, values.whole_option("conv2d, conv3d: zeros on each side.", 0)] = 0,
    boundary: values.Boundary = "zero",
    iterations: Annotated[int, values.whole_option("stencil, jacobi: sweeps.", 1)] = 1,
    tol: Annotated[
        float, values.real_option("jacobi: norms are looked at where it is above 0.")
    ] = 1e-6,
    strategy: Annotated[str, typer.Option(help="Force one; default: the fastest.")] = "",
    machine: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help='Figures of one rank, as {"flops": 6e13, "link_bandwidth": 4e11}: '
            + ", ".join(FIGURES)
            + "; with --memory-limit also "
            + ", ".join(HOST_FIGURES)
            + " (bytes a second from the host to a device and back, the part of the shorter way that "
            "the other hides, 0 to 1, bytes a second between devices, and seconds of a row that lies apart). What is missing is as on this machine; with "
            "ranks_per_host moves between hosts take the network.",
        ),
    ] = None,
    sharded: Annotated[
        bool,
        typer.Option(
            help="The arrays lie in rows over the ranks, and the result stays where it is made."
        ),
    ] = False,
    memory_limit: Annotated[
        int | None,
        values.size_option(
            "2G, 500MB, ...: arrays lie on the host, and tiles that take no more on each device "
            "are planned."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the plan of a call: steps, bytes, memory, predicted time, and what else was considered.

    From rank 0 to rank 0, over ranks; with --memory-limit in tiles, as `cuop run` makes them: exit
    code 1 says that not even the smallest fit. Nothing is computed.
    """
    from cuop import executor

    name = operation
    check_options(context, name, _OPTIONS[name])
    options = Options(
        axis, dim0, dim1, "backward", mode, stride, padding, boundary, iterations, 1.0, tol
    )
    if name == "einsum":
        call, given = executor.einsum(shapes[0]), shapes[1:]
    elif name == "tensordot":
        call, given = executor.tensordot(dims), shapes
    else:
        call, given = TILE_CALLS[name].make(options), shapes
    sizes = [_shape(text) for text in given]
    if name == "matmul" and len(sizes) == 3 and all(len(each) == 1 for each in sizes):
        m, k, n = (each[0] for each in sizes)
        sizes = [(m, k), (k, n)]
    if name in TILE_CALLS:
        _check_count(name, len(sizes))
    if name == "stencil" and len(sizes) == 1:
        sizes.append((3, 3))
    dtypes = [dtype] * len(sizes)
    figures = read_machine(machine)
    if memory_limit is not None:
        if strategy or sharded:
            raise typer.BadParameter(
                "--strategy and --sharded are not of plans with --memory-limit"
            )
        tiles = figures.tiles(ranks, memory_limit)
        print_tiles(name, call, sizes, dtypes, options, tiles, as_json)
        return
    made = executor.plan_ranks(
        call, sizes, dtypes, ranks=ranks, in_parts=sharded, machine=figures.rank, strategy=strategy
    )
    text = made.to_json() if as_json else f"{made.explain()}  reckoned with {figures.rank!r}"
    console.console.print(text, markup=False)


def _shape(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"(\d{1,18}(x\d{1,18})*)?", text, re.ASCII):
        raise typer.BadParameter(
            f"{text!r} is no shape; sizes of up to 18 digits with x between them are, as 4096x4096",
            param_hint="SHAPES",
        )
    return tuple(int(size) for size in text.split("x") if size)


def _check_count(name: str, given: int) -> None:
    call = TILE_CALLS[name]
    if not call.fewest_inputs <= given <= call.most_inputs:
        wanted = " or ".join(str(n) for n in range(call.fewest_inputs, call.most_inputs + 1))
        also = ", or the three sizes M K N" if name == "matmul" else ""
        raise typer.BadParameter(f"{name} takes {wanted} shapes{also}, not {given}")
