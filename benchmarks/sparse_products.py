"""Products of matrices that are partly zero: sparse beside dense, on one core and over ranks.

    python benchmarks/sparse_products.py --table table.md

One core: the processor's time of a dense product, of a sparse one with taking its left operand apart, and of
SciPy's CSR product, and what the choice by counted zeros takes. Ranks: distributed_matmul_sparse_aware beside
distributed_matmul on CPU ranks under mpirun, one thread each, from rank 0 to rank 0 in row blocks, with the
bytes that all ranks send: zeros left out by predicted cost, from a half of zeros on, and by cost of blocks that
are multiplied densely, which is the wire alone. Dense and sparse calls are made in turns; each figure is the best of several.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROUNDS = 25
SPARSITIES = [0.0, 0.5, 0.8, 0.95, 0.99]
SIZES = [512, 1024, 2048]


def operands(n, sparsity, dtype):
    rng = np.random.default_rng(n)
    a = rng.standard_normal((n, n)) * (rng.random((n, n)) >= sparsity)
    return a.astype(dtype), rng.standard_normal((n, n)).astype(dtype)


def best(*calls, clock=time.perf_counter, rounds=ROUNDS):
    """The shortest time of each in milliseconds, one after the other in each round; the first does
    not count.
    """
    times = [[] for _ in calls]
    for _ in range(rounds):
        for call, taken in zip(calls, times, strict=True):
            begin = clock()
            call()
            taken.append((clock() - begin) * 1e3)
    return [min(taken[1:]) for taken in times]


def on_one_core(n, sparsity, dtype):
    import scipy.sparse

    import cuop
    from cuop import dist

    a, b = operands(n, sparsity, dtype)
    x, y, peer = cuop.asarray(a), cuop.asarray(b), scipy.sparse.csr_array(a)
    alone = dist.run_ranks(lambda comm: comm, 1)[0]
    clock = time.process_time  # of one thread, whatever else the machine does
    dense, chosen = best(
        lambda: dist.matmul_from_root(alone, x, y),
        lambda: dist.matmul_from_root(alone, x, y, product="auto"),
        clock=clock,
    )
    sparse, scipys = best(lambda: cuop.to_sparse(x) @ y, lambda: peer @ b, clock=clock)
    return (
        f"| {dtype} {n} | {sparsity:.0%} | {dense:.1f} | {sparse:.1f} | {scipys:.1f} | {chosen:.1f} | "
        f"{dense / chosen:.2f} |"
    )


def rank_case(case):
    """Called on each rank under mpirun: prints milliseconds and bytes of both calls on rank 0."""
    import cuop
    from cuop import dist

    n, sparsity, dtype = json.loads(case)
    comm = dist.world()
    a, b = operands(n, sparsity, dtype) if comm.rank == 0 else (None, None)
    by_cost, from_half = dist.Wire.sparse(), dist.Wire.sparse(0.5)
    dist.calibrate(comm)

    def call(**options):
        def run():
            comm.barrier()
            dist.matmul_from_root(comm, a, b, strategy="row", **options)
            comm.barrier()

        return run

    calls = [
        call(),
        call(wire=by_cost, product="auto"),
        call(wire=from_half, product="auto"),
        call(wire=by_cost),
    ]
    times = best(*calls)
    sent = []
    for each in calls:
        before = comm.bytes_sent
        each()
        mine = cuop.tensor(comm.bytes_sent - before, dtype="int64")
        sent.append(int(dist.all_reduce(comm, mine, "sum")))
    if comm.rank == 0:
        print(json.dumps([times, sent]))


def over_ranks(ranks, n, sparsity, dtype):
    environment = {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    command = ["mpirun", "--oversubscribe", "-np", str(ranks), sys.executable, __file__, "--case"]
    done = subprocess.run(
        [*command, json.dumps([n, sparsity, dtype])],
        env=environment, capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    (dense, aware, half, wire), sent = json.loads(done.stdout.strip().splitlines()[-1])
    mib = " | ".join(f"{each / 2**20:.2f}" for each in sent[:3])
    return (
        f"| {dtype} {n} | {sparsity:.0%} | {dense:.1f} | {aware:.1f} | {dense / aware:.2f} | {half:.1f} | "
        f"{dense / half:.2f} | {wire:.1f} | {dense / wire:.2f} | {mib} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--table", help="a Markdown file to write")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ |= {"CUOP_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "CUOP_DEVICE": "cpu"}
    if options.case:
        return rank_case(options.case)
    cases = [
        (n, sparsity, dtype)
        for dtype in ("float32", "float64")
        for n in options.sizes
        for sparsity in SPARSITIES
    ]
    lines = []

    def add(line):
        lines.append(line)
        print(line, flush=True)

    add(
        "| A n x n | zeros | dense, ms | taken apart and sparse, ms | SciPy CSR, ms | chosen, ms | dense / chosen |"
    )
    add("|---|---|---|---|---|---|---|")
    for case in cases:
        add(on_one_core(*case))
    add("")
    add(
        "| A n x n | zeros | dense, ms | by cost, ms | dense / cost | from 50 %, ms | dense / 50 % | "
        "wire by cost, ms | dense / wire | dense, MiB | by cost, MiB | from 50 %, MiB |"
    )
    add("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for case in cases:
        add(over_ranks(options.ranks, *case))
    if options.table:
        Path(options.table).write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
