"""Rows to columns over the ranks, over sizes: a call and its wait, and calls that follow each other.

    python benchmarks/redistribute.py --ranks 2
    mpirun --bind-to none -np 2 python benchmarks/redistribute.py

Ranks are the processes of mpirun or threads of this one, rank r on GPU r. float32, in memory of cuOP's own. Times
are those of the slowest rank: the median of calls that begin together with nothing else going on, and the
least mean of ten in a row. Rates are of the bytes that one rank sends, in GB/s.
"""

from launched import alone_and_in_a_row, arguments, on_ranks, origin, tell

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
TIMES = 75


def measured(comm, device, shape):
    """(alone, in a row) of the slowest rank."""
    line = dist.Mesh.line(comm.size)
    rows, columns = (dist.Sharding(line, dist.P(*axes)) for axes in (("r", None), (None, "r")))
    root = cuop.ones(shape, dtype="float32", device=device) if comm.rank == 0 else None
    x = dist.DistTensor.from_root(comm, root).redistribute(rows)
    return alone_and_in_a_row(comm, lambda: x.redistribute(columns), TIMES)


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
