"""Arrays of rank 0's host in tiles on the GPUs of all processes, beside one process with all GPUs.

    python benchmarks/process_tiles.py
    mpirun --bind-to none -np 2 python benchmarks/process_tiles.py

float32, or what the case names, in ordinary memory of rank 0; results are new memory there. Seconds of the slowest of the ranks: of the
first call, whose result's pages the system makes, and the least of two more. `--scale` divides the lengths.
CUOP_PEER_MAPPING=0: GPUs of processes take nothing from each other.
"""

import argparse
import time

import numpy as np
from launched import tell

import cuop
from cuop import dist, executor


def numbers(*shape, dtype="float32"):
    """Random numbers that repeat themselves, as making so many takes long."""
    some = np.random.default_rng(1).standard_normal(1 << 20, dtype=np.float32)
    array = np.resize(some, shape)
    return array if dtype == "float32" else cuop.asarray(array, dtype=dtype, device="cpu")


def cases(scale):
    """(name, operation, shapes of the inputs, their dtype)."""
    m, n = 32768 // scale, 16384 // scale
    images = (max(2, 2048 // scale), 64, 112, 112)
    return (
        (f"matmul {m} x {n} x {n}", executor.matmul(), [(m, n), (n, n)], "float32"),
        (
            f"matmul {m} x {n} x {n} of bfloat16",
            executor.matmul(),
            [(m, n), (n, n)],
            "bfloat16",
        ),
        (
            f"conv2d of {images[0]} images, 3 x 3",
            executor.conv(1, 1, 1, 1),
            [images, (64, 64, 3, 3)],
            "float32",
        ),
        (f"sum of rows {m} x {m}", executor.sum(1), [(m, m)], "float32"),
        (f"rfft of rows {2 * m} x {n // 2}", executor.rfft(), [(2 * m, n // 2)], "float32"),
    )


def seconds_of(comm, operation, inputs):
    """(the first call's, the least of two more, the last one's report)."""
    taken = []
    for _ in range(3):
        comm.barrier()
        begin = time.perf_counter()
        result, report = executor.run(comm, operation, inputs)
        taken.append(time.perf_counter() - begin)
        del result
    slowest = dist.all_reduce(comm, cuop.tensor(taken, device="cpu", dtype="float64"), "max")
    taken = slowest.tolist()
    return taken[0], min(taken[1:]), report


def main():
    """Measure the cases."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scale", type=int, default=1)
    options = parser.parse_args()
    comm = dist.world()
    is_root = comm.rank == 0
    small = numbers(2048, 2048) if is_root else None
    executor.run(comm, executor.matmul(), [small, small])
    lines = [
        "| case | processes | first, s | then, s | predicted | tiles | from other GPUs |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, operation, shapes, dtype in cases(options.scale):
        inputs = [numbers(*shape, dtype=dtype) if is_root else None for shape in shapes]
        first, then, report = seconds_of(comm, operation, inputs)
        plan = report.plan
        lines.append(
            f"| {name} | {comm.size} | {first:.3f} | {then:.3f} | {plan.seconds:.3f} | {plan.tiles} "
            f"| {report.shared / 2**20:.0f} MiB |"
        )
    if is_root:
        tell("Tiles on the GPUs of several processes", lines, None)


if __name__ == "__main__":
    main()
