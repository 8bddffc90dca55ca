"""Products and transforms on CPU ranks beside ScaLAPACK and FFTW's MPI transforms.

    apt-get install libscalapack-openmpi-dev libfftw3-mpi-dev libopenblas-dev
    python benchmarks/mpi_peers.py --ranks 2 --table table.md

Both sides run under mpirun, in turns, with one thread a rank, on operands that lie over the ranks already:
ours in blocks of rows, ScaLAPACK's in its block-cyclic layout (the best of three block sizes), FFTW's in
slabs, planned with FFTW_MEASURE (ours are not, unless CUOP_FFT_MEASURE=1 is set); "line" is one long transform, whose spectrum lies as the line does. Each figure is the median of several calls of the slowest rank, and the
better of two such runs.
"""

import argparse
import functools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROUNDS = 7
RUNS = 2


def ours(case):
    """Called on each rank under mpirun: prints the median seconds of the case on rank 0."""
    import numpy as np

    import cuop
    from cuop import dist

    comm = dist.world()
    rows = dist.Sharding(dist.Mesh.line(comm.size), dist.P("r"))
    kind, dtype, *sizes = case.split()
    sizes = [int(size) for size in sizes]

    def sharded(shape, seed):
        low, high = rows.owner_box(shape, comm.rank)[0]
        values = np.random.default_rng(seed).standard_normal((high - low, *shape[1:]))
        part = cuop.asarray(values.astype("complex128" if kind == "fft" else dtype))
        return dist.DistTensor(comm, rows, shape, part.dtype, part)

    if kind == "gemm":
        a, b = sharded((sizes[0], sizes[0]), 1), sharded((sizes[0], sizes[0]), 2)
        call = functools.partial(dist.matmul, a, b)
    elif kind == "line":
        call = functools.partial(dist.fft, sharded(tuple(sizes), 1), output=rows)
    else:
        x = sharded(tuple(sizes), 1)
        output = {} if dtype == "columns" else {"output": rows}
        call = functools.partial(dist.fftn, x, **output)
    times = []
    for _ in range(ROUNDS + 1):
        comm.barrier()
        begin = time.perf_counter()
        call()
        took = cuop.tensor(time.perf_counter() - begin, dtype="float64")
        times.append(float(dist.all_reduce(comm, took, "max")))
    if comm.rank == 0:
        print(json.dumps([statistics.median(times[1:]), dist.last_report().plan.strategy]))


def mpirun(ranks, *command):
    environment = {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "CUOP_THREADS": "1",
        "CUOP_DEVICE": "cpu",
    }
    done = subprocess.run(
        ["mpirun", "--oversubscribe", "-np", str(ranks), *map(str, command)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"mpi_peers: {' '.join(map(str, command))} failed:\n{done.stderr}")
    return done.stdout.strip().splitlines()[-1]


def built(folder):
    """The peers' program, compiled in `folder`."""
    compiler = shutil.which("mpicxx")
    if compiler is None:
        sys.exit("mpi_peers: there is no mpicxx")
    program = Path(folder) / "rank_peers"
    source = HERE / "rank_peers.cpp"
    libraries = ["-lscalapack-openmpi", "-lfftw3_mpi", "-lfftw3", "-lopenblas"]
    subprocess.run([compiler, "-O2", "-std=c++17", source, "-o", program, *libraries], check=True)
    return program


CASES = [
    *(f"gemm {dtype} {n}" for dtype in ("float64", "float32") for n in (256, 1000, 2048, 3001)),
    *(
        f"fft {left} {n} {m}"
        for left in ("columns", "rows")
        for n, m in ((256, 256), (1000, 1500), (2048, 2048), (4096, 1024), (1021, 2047))
    ),
    *(f"line complex128 {n}" for n in (1 << 16, 10**6, 1 << 22, 15**6, 1 << 24)),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--cases", nargs="*", default=CASES, help="such as 'gemm float64 2048'")
    parser.add_argument("--table", help="a Markdown file to write")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        return ours(options.case)
    lines = ["| case | cuOP (strategy), ms | peer, ms | peer / cuOP |", "|---|---|---|---|"]
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        program = built(folder)
        for case in options.cases:
            mine, peers, strategy = [], [], ""
            for _ in range(RUNS):
                seconds, strategy = json.loads(
                    mpirun(options.ranks, sys.executable, __file__, "--case", case)
                )
                mine.append(seconds)
                peers.append(float(mpirun(options.ranks, program, *case.split(), ROUNDS)))
            ratios.append(min(peers) / min(mine))
            lines.append(
                f"| {case} | {min(mine) * 1e3:.3g} ({strategy}) | {min(peers) * 1e3:.3g} | "
                f"{ratios[-1]:.2f} |"
            )
            print(lines[-1], flush=True)
    print(f"geometric mean {statistics.geometric_mean(ratios):.2f}, worst {min(ratios):.2f}")
    if options.table:
        Path(options.table).write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
