"""Solvers of the Poisson equation beside each other and, on the CPU, beside SciPy and PyAMG.

    python benchmarks/poisson.py --sizes 1024 4096 --table table.md
    python benchmarks/poisson.py --sizes 4096 16384 --device cuda --ranks 1

Laplace(u) = rhs with zeros around n x n cells of float64, random rhs, from zeros, until the 2-norm of the
residual is 1e-8 of that of rhs. Methods that would take longer than --limit seconds are timed for 64
iterations, and their time is that of as many iterations as their theory allows them: such rows say
"predicted". Residuals are computed by NumPy from what a solver returned, whatever it says of itself.
SciPy's and PyAMG's times are those of their solvers alone, the matrix being there, and of PyAMG the
hierarchy of grids, which has a row of its own. Of cuOP and sine transforms the best of three, of others one
run. Both peers use one thread, except for SciPy's sine transforms,
which take as many as cuOP. Where PyAMG is not installed a row says so.
"""

import argparse
import math
import os
import time
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault(
    "OPENBLAS_NUM_THREADS", "1"
)  # which wait for each other where cores are shared

import numpy as np  # noqa: E402
import scipy.fft  # noqa: E402
import scipy.sparse as sp  # noqa: E402
import scipy.sparse.linalg as sla  # noqa: E402

import cuop  # noqa: E402
from cuop import dist  # noqa: E402

TOLERANCE = 1e-8
TRIED = 64
REPEATS = 3
MOST_OF_SUPERLU = 1024  # which takes a minute there, and memory

HIERARCHIES = ("ruge_stuben_solver", "smoothed_aggregation_solver")
METHODS = ("multigrid", "direct", "cg", "rb-sor", "jacobi")

# Iterations for an error of TOLERANCE: by the spectral radius of Jacobi's and Young's methods, by the
# condition of the matrix for conjugate gradients.
EXPECTED = {
    "jacobi": lambda n: -math.log(TOLERANCE) * 2 * ((n + 1) / math.pi) ** 2,
    "rb-sor": lambda n: -math.log(TOLERANCE) * (n + 1) / (2 * math.pi),
    "cg": lambda n: math.log(2 / TOLERANCE) * (n + 1) / math.pi,
}


class Time(NamedTuple):
    """Seconds, and those of all cores together, which tell more where others use them too."""

    passed: float
    used: float

    def times(self, factor):
        return Time(self.passed * factor, self.used * factor)


def timed(call, repeats):
    """The least of each, and what the last call returned."""
    passed = used = math.inf
    for _ in range(repeats):
        begin, begin_used = time.perf_counter(), time.process_time()
        result = call()
        passed = min(passed, time.perf_counter() - begin)
        used = min(used, time.process_time() - begin_used)
    return Time(passed, used), result


def relative_residual(u, rhs):
    """Of Laplace(u) = rhs with zeros around."""
    wide = np.pad(np.asarray(u).reshape(rhs.shape), 1)
    made = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
    made -= 4.0 * wide[1:-1, 1:-1]
    return np.linalg.norm(made - rhs) / np.linalg.norm(rhs)


def ours(method, rhs, ranks, iterations, tolerance):
    """What rank 0 has: the solution, and what is said of it."""
    start = cuop.zeros_like(rhs)

    def work(comm):
        mine = [start, rhs] if comm.rank == 0 else [None, None]
        return dist.solve_poisson_2d_from_root(
            comm, *mine, iterations=iterations, tol=tolerance, method=method
        )

    return dist.run_ranks(work, ranks)[0]


def our_row(method, rhs, ranks, limit, device):
    """(method, iterations, Time, relative residual)"""
    given, rhs = rhs, cuop.asarray(rhs).to(device)
    name = f"cuOP {method}, {ranks} rank{'s' if ranks > 1 else ''}"
    if method in EXPECTED:
        tried, _ = timed(lambda: ours(method, rhs, ranks, TRIED, 0.0), 2)
        expected = EXPECTED[method](rhs.shape[0])
        whole = tried.times(expected / TRIED)
        if whole.passed > limit or method == "jacobi":
            return name, f"{expected:.3g}, predicted", whole, None
    seconds, (u, info) = timed(lambda: ours(method, rhs, ranks, 10**6, TOLERANCE), REPEATS)
    return name, info.sweeps or "", seconds, relative_residual(u.to("cpu"), given)


def matrix_of(n):
    line = sp.diags([1.0, -2.0, 1.0], [-1, 0, 1], (n, n))
    return (sp.kron(line, sp.eye(n)) + sp.kron(sp.eye(n), line)).tocsr()


def by_sines(rhs, workers):
    """The direct solver that one writes with SciPy: sine transforms make the matrix diagonal."""
    n = rhs.shape[0]
    values = 2.0 * np.cos(np.pi * np.arange(1, n + 1) / (n + 1)) - 2.0
    made = scipy.fft.dstn(rhs, type=1, workers=workers)
    made /= values[:, None] + values
    return scipy.fft.idstn(made, type=1, workers=workers, overwrite_x=True)


def peer_rows(rhs, limit, hierarchies):
    n = rhs.shape[0]
    b = rhs.ravel()

    def counted(call):
        steps = []
        seconds, u = timed(lambda: call(steps), 1)
        return len(steps), seconds, relative_residual(u, rhs)

    threads = len(os.sched_getaffinity(0))
    seconds, u = timed(lambda: by_sines(rhs, threads), REPEATS)
    yield f"SciPy dstn, {threads} threads", "", seconds, relative_residual(u, rhs)
    matrix = matrix_of(n)
    if n <= MOST_OF_SUPERLU:
        columns = matrix.tocsc()
        seconds, u = timed(lambda: sla.spsolve(columns, b), 1)
        yield "SciPy spsolve (SuperLU)", "", seconds, relative_residual(u, rhs)
    minus = (-matrix).tocsr()
    tried, _ = timed(lambda: sla.cg(minus, -b, rtol=0.0, atol=0.0, maxiter=TRIED), 1)
    expected = EXPECTED["cg"](n)
    whole = tried.times(expected / TRIED)
    if whole.passed > limit:
        yield "SciPy cg", f"{expected:.3g}, predicted", whole, None
    else:
        yield (
            "SciPy cg",
            *counted(lambda steps: sla.cg(minus, -b, rtol=TOLERANCE, callback=steps.append)[0]),
        )
    try:
        pyamg = import_module("pyamg")
    except ImportError:
        yield "PyAMG: not installed, NOT COMPARED", "", Time(math.nan, math.nan), None
        return
    for name in hierarchies:
        seconds, solver = timed(lambda name=name: getattr(pyamg, name)(minus), 1)
        yield f"PyAMG {name}, hierarchy", "", seconds, None
        for accel in (None, "cg"):
            found = counted(
                lambda steps, solver=solver, accel=accel: solver.solve(
                    -b, tol=TOLERANCE, accel=accel, callback=steps.append
                )
            )
            yield f"PyAMG {name}{', cg' if accel else ''}", *found
        del solver


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1024, 4096])
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--device", default="cpu", help="where the operands lie: cpu or cuda")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of one solution")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--pyamg", nargs="+", choices=HIERARCHIES, default=HIERARCHIES)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    lines = [
        "| n x n | solver | iterations | seconds | of all cores together | residual / rhs |",
        "|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))

    def tell(n, name, iterations, seconds, residual):
        shown = "" if residual is None else f"{residual:.1e}"
        lines.append(
            f"| {n} | {name} | {iterations} | {seconds.passed:.3g} | {seconds.used:.3g} | {shown} |"
        )
        print(lines[-1], f"  load {os.getloadavg()[0]:.1f}", flush=True)

    for n in options.sizes:
        rhs = np.random.default_rng(n).standard_normal((n, n))
        for method in options.methods:
            for ranks in options.ranks if method in ("multigrid", "direct") else [1]:
                tell(n, *our_row(method, rhs, ranks, options.limit, options.device))
        if options.device == "cpu":
            for row in peer_rows(rhs, options.limit, options.pyamg):
                tell(n, *row)
    if options.table:
        options.table.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
