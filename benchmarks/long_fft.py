"""One long Fourier transform over CPU ranks: in four steps over all of them, and gathered on one.

    python benchmarks/long_fft.py --table table.md

Ranks are threads of this process with the cores shared among them. From rank 0 to rank 0, and from even parts to
where the result is made, each strategy is forced in turns; a figure is the best of several, and beside it stands
what the plan predicts with the figures that the ranks have measured. "Chosen" is what the planner takes, "lost"
by how much the other one is faster.
"""

import argparse
import time
from pathlib import Path

import numpy as np

STRATEGIES = {"root": ("root", "four_step"), "parts": ("one_rank", "four_step")}


def timed(comm, call, strategy):
    comm.barrier()
    begin = time.perf_counter()
    call(strategy)
    comm.barrier()
    return (time.perf_counter() - begin) * 1e3


def lines_of(comm, options):
    """Rows of the table; those of rank 0 count."""
    import cuop
    from cuop import dist

    dist.calibrate(comm)
    rows = dist.Sharding(dist.Mesh.line(comm.size), dist.P("r"))
    for log in range(options.first, options.last + 1):
        n = 1 << log
        whole = None
        if comm.rank == 0:
            parts = np.random.default_rng(log).standard_normal((2, n))
            whole = cuop.tensor(parts[0] + 1j * parts[1]).to(options.dtype)
        lying = dist.DistTensor.from_root(comm, whole).redistribute(rows)
        calls = {
            "root": lambda strategy, x=whole: dist.fft_from_root(comm, x, strategy=strategy),
            "parts": lambda strategy, x=lying: dist.fft(x, strategy=strategy),
        }
        for case, call in calls.items():
            times = {strategy: [] for strategy in STRATEGIES[case]}
            predicted = {}
            for _ in range(options.rounds if log < 22 else max(3, options.rounds // 3)):
                for strategy, taken in times.items():
                    taken.append(timed(comm, call, strategy))
                    predicted[strategy] = dist.last_report().plan.seconds * 1e3
            call("")
            chosen = dist.last_report().plan.strategy
            best = {strategy: min(taken) for strategy, taken in times.items()}
            gathered, four = (best[strategy] for strategy in STRATEGIES[case])
            lost = best[chosen] / min(best.values()) - 1
            yield (
                f"| 2^{log} | {case} | {gathered:.2f} | {predicted[STRATEGIES[case][0]]:.2f} | {four:.2f} | "
                f"{predicted['four_step']:.2f} | {chosen} | {f'{lost:.0%}' if lost > 0 else ''} |"
            )


def main():
    from cuop import dist

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--first", type=int, default=16, help="the shortest length, a power of two")
    parser.add_argument("--last", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--dtype", default="complex64")
    parser.add_argument("--table", help="a Markdown file to write")
    options = parser.parse_args()
    lines = [
        "| n | from | gathered, ms | predicted | four steps, ms | predicted | chosen | lost |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))

    def work(comm):
        for line in lines_of(comm, options):
            if comm.rank == 0:
                lines.append(line)
                print(line, flush=True)

    dist.run_ranks(work, options.ranks)
    if options.table:
        Path(options.table).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
