"""Sums over ranks beside PyTorch's on one GPU: plain, compensated and exact, and the variance.

    mpirun --bind-to none -np 2 python benchmarks/rank_sums.py --table table.md
    python benchmarks/rank_sums.py --ranks 2        # ranks as threads

float32 normal numbers, in rows over the ranks; the sum is on all of them. Milliseconds of the slowest rank: of a
call and its wait (the median), and of calls that follow each other (the shortest of some rows); bytes a second that
each GPU reads then. PyTorch has as many numbers as one rank. The exact sum's bits are compared with those that the
CPU finds.
"""

import torch
from launched import alone_and_in_a_row, arguments, on_ranks, origin, tell

import cuop
from cuop import dist

#: Numbers of each rank.
COUNTS = (1 << 20, 1 << 24, 1 << 26, 1 << 28, 1 << 30)
WAYS = {
    "sum": lambda x: dist.sum(x),
    "compensated": lambda x: dist.sum(x, mode="compensated"),
    "exact": lambda x: dist.sum(x, mode="exact"),
    "variance": lambda x: x.var(),
}
TIMES = 21


def cell(times, count, plain):
    """Milliseconds alone and in a row, bytes a second, times the plain sum's."""
    alone, row = times
    rate = 4e-12 * count / row
    return f"{alone * 1e3:.3f}, {row * 1e3:.3f} ({rate:.2f} TB/s, {row / plain:.2f})"


def main():
    """Measure all sizes."""
    options = arguments(__doc__).parse_args()

    def work(comm, device):
        lines = []
        for count in COUNTS:
            local = cuop.random((count // 1024, 1024), device=device)
            x = dist.DistTensor.from_parts(comm, local)
            peer = torch.from_dlpack(local)
            times = {
                name: alone_and_in_a_row(comm, lambda way=way, x=x: way(x), TIMES)
                for name, way in WAYS.items()
            }
            theirs = alone_and_in_a_row(
                comm, lambda peer=peer: torch.sum(peer), TIMES, wait=torch.cuda.synchronize
            )
            exact = WAYS["exact"](x).item()
            on_host = dist.DistTensor.from_parts(comm, local.to("cpu"))
            is_same = exact == WAYS["exact"](on_host).item()
            plain = times["sum"][1]
            cells = [cell(theirs, count, plain), *(cell(t, count, plain) for t in times.values())]
            lines.append(
                f"| {count // 2**20} Mi | {' | '.join(cells)} | {'yes' if is_same else 'NO'} |"
            )
        return lines

    lines, command = on_ranks(work, options, "rank_sums.py")
    if lines is None:
        return
    heads = [
        *origin(command),
        "",
        f"| numbers of a rank | PyTorch, one GPU | {' | '.join(WAYS)} | the CPU's bits |",
        "|---|---|" + "---|" * len(WAYS) + "---|",
    ]
    tell("Sums over ranks", heads + lines, options.table)


if __name__ == "__main__":
    main()
