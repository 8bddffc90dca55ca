"""Solvers of the Poisson equation beside each other and, on the CPU, beside SciPy and PyAMG.

    python benchmarks/poisson.py --sizes 1024 4096 --table table.md
    python benchmarks/poisson.py --sizes 4096 16384 --device cuda --ranks 1

Laplace(u) = rhs with zeros around n x n cells of float64, random rhs, from zeros, until the 2-norm of the
residual is 1e-8 of that of rhs. Methods that would take longer than --limit seconds are timed for 64
iterations, and their time is that of as many iterations as their theory allows them: such rows say
"predicted".
SciPy's and PyAMG's times are those of their solvers alone, the matrix being there.
"""

import argparse
import math
import os
import time
from importlib import import_module
from pathlib import Path

os.environ.setdefault(
    "OPENBLAS_NUM_THREADS", "1"
)  # which wait for each other where cores are shared

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
import scipy.sparse.linalg as sla  # noqa: E402

import cuop  # noqa: E402
from cuop import dist  # noqa: E402

TOLERANCE = 1e-8
TRIED = 64
MOST_OF_PEERS = 2048  # whose matrices take gigabytes

# Iterations for an error of TOLERANCE: by the spectral radius of Jacobi's and Young's methods, by the
# condition of the matrix for conjugate gradients.
EXPECTED = {
    "jacobi": lambda n: -math.log(TOLERANCE) * 2 * ((n + 1) / math.pi) ** 2,
    "rb-sor": lambda n: -math.log(TOLERANCE) * (n + 1) / (2 * math.pi),
    "cg": lambda n: math.log(2 / TOLERANCE) * (n + 1) / math.pi,
}


def timed(call, repeats):
    best, result = math.inf, None
    for _ in range(repeats):
        begin = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - begin)
    return best, result


def ours(method, rhs, ranks, iterations, tolerance):
    start = cuop.zeros_like(rhs)

    def work(comm):
        mine = [start, rhs] if comm.rank == 0 else [None, None]
        return dist.solve_poisson_2d_from_root(
            comm, *mine, iterations=iterations, tol=tolerance, method=method
        )[1]

    return dist.run_ranks(work, ranks)[0]


def our_row(method, rhs, ranks, limit, device):
    """(method, iterations, seconds, relative residual)"""
    norm = np.linalg.norm(rhs)
    rhs = cuop.asarray(rhs).to(device)
    name = f"cuOP {method}, {ranks} rank{'s' if ranks > 1 else ''}"
    if method in EXPECTED:
        seconds, _ = timed(lambda: ours(method, rhs, ranks, TRIED, 0.0), 2)
        expected = EXPECTED[method](rhs.shape[0])
        if seconds * expected / TRIED > limit or method == "jacobi":
            return name, f"{expected:.3g}, predicted", seconds * expected / TRIED, None
    seconds, info = timed(lambda: ours(method, rhs, ranks, 10**6, TOLERANCE), 3)
    return name, info.sweeps or "", seconds, info.residual_norm / norm


def matrix_of(n):
    line = sp.diags([1.0, -2.0, 1.0], [-1, 0, 1], (n, n))
    return (sp.kron(line, sp.eye(n)) + sp.kron(sp.eye(n), line)).tocsr()


def peer_rows(rhs, limit):
    n = rhs.shape[0]
    matrix, b = matrix_of(n), rhs.ravel()

    def residual(u):
        return np.linalg.norm(b - matrix @ u) / np.linalg.norm(b)

    def counted(call):
        steps = []
        seconds, u = timed(lambda: call(steps), 1)
        return len(steps), seconds, residual(u)

    if n <= 1024:
        columns = matrix.tocsc()
        seconds, u = timed(lambda: sla.spsolve(columns, b), 1)
        yield "SciPy spsolve (SuperLU)", "", seconds, residual(u)
    minus = (-matrix).tocsr()
    seconds, _ = timed(lambda: sla.cg(minus, -b, rtol=0.0, atol=0.0, maxiter=TRIED), 1)
    expected = EXPECTED["cg"](n)
    if seconds * expected / TRIED > limit:
        yield "SciPy cg", f"{expected:.3g}, predicted", seconds * expected / TRIED, None
    else:
        yield (
            "SciPy cg",
            *counted(lambda steps: sla.cg(minus, -b, rtol=TOLERANCE, callback=steps.append)[0]),
        )
    try:
        pyamg = import_module("pyamg")
    except ImportError:
        return
    solver = pyamg.ruge_stuben_solver(minus)
    yield (
        "PyAMG ruge_stuben_solver, its hierarchy being there",
        *counted(lambda steps: solver.solve(-b, tol=TOLERANCE, callback=steps.append)),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1024, 4096])
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--device", default="cpu", help="where the operands lie: cpu or cuda")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of one solution")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    lines = ["| n x n | solver | iterations | seconds | residual / rhs |", "|---|---|---|---|---|"]
    print("\n".join(lines))

    def tell(n, name, iterations, seconds, residual):
        shown = "" if residual is None else f"{residual:.1e}"
        lines.append(f"| {n} | {name} | {iterations} | {seconds:.3g} | {shown} |")
        print(lines[-1], f"  load {os.getloadavg()[0]:.1f}", flush=True)

    for n in options.sizes:
        rhs = np.random.default_rng(n).standard_normal((n, n))
        for method in ("multigrid", "direct", "cg", "rb-sor", "jacobi"):
            for ranks in options.ranks if method in ("multigrid", "direct") else [1]:
                tell(n, *our_row(method, rhs, ranks, options.limit, options.device))
        has_peers = n <= MOST_OF_PEERS and options.device == "cpu"
        for row in peer_rows(rhs, options.limit) if has_peers else ():
            tell(n, *row)
    if options.table:
        options.table.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
