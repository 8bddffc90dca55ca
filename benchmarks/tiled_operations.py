"""Every operation in tiles on arrays of the host, beside the link's floor and what its plan predicts.

    python benchmarks/tiled_operations.py --table table.md
    python benchmarks/tiled_operations.py --cases moves passes --memories pageable --gib 1

Arrays have `--gib` GiB each (about; 2 without), float32 or complex64; "of the floor" is what page-locked links, measured
in the same run, take for every input once and the result once, over the time. Work in several passes (a limit forces
them) moves its bytes as often, and its result is a new array, whose pages the system makes within the time. The
better of two calls behind one that loads what is needed.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from larger_than_memory import GIB, MEMORIES, Locked, Roofs, random_array, seconds_of

import cuop
from cuop import dist, executor


class Case:
    """Inputs, and a call that gives (result, report)."""

    def __init__(self, inputs, call):
        self.inputs = inputs
        self.call = call
        self.out = None  # the result's memory, where calls write into one


def one_pass(make, inputs):
    """An operation of run(), whose result has memory behind the first call."""

    def call(comm):
        into = {} if case.out is None else {"out": cuop.from_dlpack(case.out)}
        result, report = executor.run(comm, make(), inputs, **into)
        if case.out is None:
            case.out = np.array(result, copy=True)
        return result, report

    case = Case(inputs, call)
    return case


def square(gib, dtype=np.float32):
    """The side, a multiple of 64, of a square matrix of that size."""
    return int((gib * GIB / np.dtype(dtype).itemsize) ** 0.5) // 64 * 64


def reductions(gib):
    n = square(gib)

    def over(make):
        return one_pass(make, [random_array((n, n), 1)])

    yield f"sum of rows {n} x {n}", over(lambda: executor.sum(1))
    yield f"sum of columns {n} x {n}", over(lambda: executor.sum(0))
    yield f"max of all {n} x {n}", over(lambda: executor.max())
    yield f"compensated sum of all {n} x {n}", over(lambda: executor.sum(mode="compensated"))
    yield f"exact sum of all {n} x {n}", over(lambda: executor.sum(mode="exact"))
    yield f"exact sum of rows {n} x {n}", over(lambda: executor.sum(1, mode="exact"))


def moves(gib):
    n = square(gib)
    x, y = random_array((n, n), 2), random_array((n, n), 3)
    yield f"transpose {n} x {n}", one_pass(executor.transpose, [x])
    yield f"add {n} x {n}", one_pass(executor.add, [x, y])
    yield f"add of a row {n} x {n}", one_pass(executor.add, [x, y[:1]])
    cube = x.reshape(-1)[: 64 * (n * n // 4096 // 64) * 4096].reshape(64, -1, 64, 64)
    yield f"transpose (0, 2) of {cube.shape}", one_pass(lambda: executor.transpose(0, 2), [cube])


def transforms(gib):
    n = square(gib, np.complex64)
    z = random_array((n, n), 4, np.complex64)
    yield f"fft of rows {n} x {n}", one_pass(executor.fft, [z])
    yield f"fft of columns {n} x {n}", one_pass(lambda: executor.fft(dim=0), [z])
    yield f"irfft of rows {n} x {n}", one_pass(executor.irfft, [z])
    x = z.view(np.float32)
    yield f"rfft of rows {n} x {2 * n}", one_pass(executor.rfft, [x])
    grids = z.reshape(-1)[: n * n // (1 << 20) * (1 << 20)].reshape(-1, 1024, 1024)
    yield f"fft2d of {grids.shape}", one_pass(executor.fft2d, [grids])


def in_passes(gib):
    limit = int(gib * GIB / 4)
    n = square(gib, np.complex64)
    z = random_array((n, n), 5, np.complex64)

    def line(x, **kind):
        return Case([x], lambda comm: executor.fft_line(comm, x, memory_limit=limit, **kind))

    yield (
        f"fft2d of one grid {n} x {n}, a quarter fits",
        Case([z], lambda comm: executor.fft2d_grid(comm, z, memory_limit=limit)),
    )
    flat = z.reshape(-1)[: 1 << (n * n).bit_length() - 1]
    yield f"fft of one line of {flat.size}, a quarter fits", line(flat)
    yield (
        f"rfft of one line of {2 * flat.size}, a quarter fits",
        line(flat.view(np.float32), kind="rfft"),
    )
    yield f"irfft of one line of {flat.size}, a quarter fits", line(flat, kind="irfft")
    short = flat[: (1 << 25) - 39]  # a prime number
    yield (
        f"fft of one line of {short.size}, 64 MiB fit",
        Case([short], lambda comm: executor.fft_line(comm, short, memory_limit=64 << 20)),
    )
    m = square(gib)
    grid = random_array((m, m), 6)
    kernel = np.float32([[0, 0.25, 0], [0.25, 0, 0.25], [0, 0.25, 0]])
    yield (
        f"stencil of {m} x {m}, 8 sweeps, a quarter fits",
        Case(
            [grid],
            lambda comm: executor.stencil_2d(comm, grid, kernel, iterations=8, memory_limit=limit),
        ),
    )
    yield (
        f"jacobi of {m} x {m}, 8 sweeps, a quarter fits",
        Case(
            [grid, grid],
            lambda comm: executor.jacobi_2d(
                comm, grid, grid, iterations=8, tol=0.0, with_info=False, memory_limit=limit
            )[::2],
        ),
    )


def products(gib):
    batch = int(gib * GIB / 4 / 512 / 512)
    a, b = random_array((batch, 512, 512), 7), random_array((batch, 512, 512), 8)
    yield f"batch_matmul {batch} of 512 x 512", one_pass(executor.batch_matmul, [a, b])
    text = "bij,bkj->kbi"
    yield f"einsum {text} of the same", one_pass(lambda: executor.einsum(text), [a, b])
    tall = a.reshape(-1, 512)
    text = f"matmul {tall.shape[0]} x 512 x 512"
    yield text, one_pass(executor.matmul, [tall, b[0]])


def convolutions(gib):
    n = int(gib * GIB / 4 / 32 / 128 / 128)
    x = random_array((n, 32, 128, 128), 9)
    weights = {k: random_array((32, 32, k, k), 10) for k in (1, 5)}
    text = f"conv2d {n} x 32 x 128 x 128"
    yield f"{text}, 1 x 1", one_pass(lambda: executor.conv(1, 0, 1, 1), [x, weights[1]])
    yield f"{text}, 5 x 5 by 2", one_pass(lambda: executor.conv(2, 2, 1, 1), [x, weights[5]])
    depthwise = random_array((32, 1, 3, 3), 11)
    yield f"{text}, 3 x 3, 32 groups", one_pass(lambda: executor.conv(1, 1, 1, 32), [x, depthwise])


CASES = {
    "reductions": reductions, "moves": moves, "transforms": transforms, "passes": in_passes,
    "products": products, "convolutions": convolutions,
}  # fmt: skip
HEAD = "| case | memory | cuOP, s | predicted | off | floor | of the floor | passes |"


def row_of(case, name, memory, comm, roofs):
    if case.out is None:
        case.call(comm)
    inputs = list({id(x): x for x in case.inputs}.values())
    locked = [*inputs, *([] if case.out is None else [case.out])]
    with Locked(*(locked if memory == "page-locked" else [])):
        seconds, (result, report) = seconds_of(lambda: case.call(comm))
    floor = roofs.floor(inputs, result, 0)
    values = [
        name, memory, f"{seconds:.3f}", f"{report.predicted:.3f}",
        f"{report.predicted / seconds - 1:+.0%}", f"{floor:.3f}", f"{floor / seconds:.2f}",
        str(report.passes),
    ]  # fmt: skip
    return "| " + " | ".join(values) + " |"


def main():
    """Measure the cases."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--memories", nargs="+", choices=MEMORIES, default=MEMORIES)
    parser.add_argument("--gib", type=float, default=2)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    roofs = Roofs(torch.cuda.device_count())
    comm = dist.world()
    lines = [HEAD, "|" + "---|" * (HEAD.count("|") - 1)]
    print(roofs, *lines, sep="\n", flush=True)
    for group in options.cases:
        for name, case in CASES[group](options.gib):
            for memory in options.memories:
                lines.append(row_of(case, name, memory, comm, roofs))
                print(lines[-1], flush=True)
    if options.table:
        options.table.write_text("\n".join([str(roofs), "", *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
