"""Rows to columns over the ranks, over sizes: a call and its wait, and calls that follow each other.

    python benchmarks/redistribute.py --ranks 2
    mpirun --bind-to none -np 2 python benchmarks/redistribute.py

Ranks are the processes of mpirun or threads of this one, rank r on GPU r. float32, in memory of cuOP's own. Times
are those of the slowest rank: the median of calls that begin together with nothing else going on, and the
least mean of ten in a row. Rates are of the bytes that one rank sends, in GB/s.
"""

import statistics
import time

from launched import arguments, on_ranks, origin, slowest, tell

import cuop
from cuop import dist

SHAPES = (
    (1024, 1024),
    (2048, 2048),
    (4096, 4096),
    (8192, 8192),
    (16384, 16384),
    (32768, 16384),
    (65536, 4096),
    (16383, 16385),
)
ALONE, ROWS = 75, 5


def seconds_of(comm, x, sharding, times):
    """Of a call, of so many that follow each other."""
    cuop.synchronize()
    comm.barrier()
    begin = time.perf_counter()
    for _ in range(times):
        x.redistribute(sharding)
    cuop.synchronize()
    return (time.perf_counter() - begin) / times


def measured(comm, device, shape):
    """(alone, in a row) of the slowest rank."""
    line = dist.Mesh.line(comm.size)
    rows, columns = (dist.Sharding(line, dist.P(*axes)) for axes in (("r", None), (None, "r")))
    root = cuop.ones(shape, dtype="float32", device=device) if comm.rank == 0 else None
    x = dist.DistTensor.from_root(comm, root).redistribute(rows)
    seconds_of(comm, x, columns, 2)
    times = [seconds_of(comm, x, columns, 1) for _ in range(ALONE)]
    times += [seconds_of(comm, x, columns, 10) for _ in range(ROWS)]
    times = slowest(comm, times)
    return statistics.median(times[:ALONE]), min(times[ALONE:])


def main():
    """Measure the shapes."""
    options = arguments(__doc__).parse_args()

    def work(comm, device):
        lines = []
        for shape in SHAPES:
            sent = 4 * shape[0] * shape[1] * (comm.size - 1) / comm.size**2
            cells = [f"{t * 1e3:.3f} ({sent / t / 1e9:.0f})" for t in measured(comm, device, shape)]
            lines.append(
                f"| {shape[0]} x {shape[1]} | {sent / 2**20:.3g} MiB | {' | '.join(cells)} |"
            )
        return lines

    lines, command = on_ranks(work, options, "redistribute.py")
    if lines is None:
        return
    heads = [
        *origin(command),
        "",
        "| shape | a rank sends | alone, ms (GB/s) | ten in a row, ms (GB/s) |",
        "|---|---|---|---|",
    ]
    tell("Rows to columns over ranks", heads + lines, options.table)


if __name__ == "__main__":
    main()
