"""Distributed products whose blocks travel as 16-bit floats, or without their zeros, beside plain float32.

    mpirun --bind-to none -np 2 python benchmarks/wires.py --table table.md
    python benchmarks/wires.py --ranks 2 --device cpu --sizes 512 1024

Operands are square and on rank 0, as the product is; the planner chooses the split of each call. "Narrow" wires
round blocks to float16 or bfloat16 on the way, "sparse" ones leave zeros out where that is predicted to pay (A has
the given part of zeros at random places), and the product of sparse blocks is sparse where that is. Milliseconds of
a call and its wait on the slowest rank, all starting together: medians of several in turns, after two first ones.
Bytes are those that all ranks send. Errors are the largest beside the product in float64, divided by
epsilon sqrt(K) |a| |b|, epsilon being the wire's and |a|, |b| the largest norms of a row of A and a column of B over
sqrt(K).
"""

import statistics
import time

import numpy as np
from launched import arguments, on_ranks, origin, slowest, tell

import cuop
from cuop import dist

EPSILON = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
SPARSITIES = [0.0, 0.5, 0.8, 0.95, 0.99]
ROWS_CHECKED = 64


def operands(n, zeros, device):
    generator = np.random.default_rng(n)
    a = generator.standard_normal((n, n), dtype=np.float32)
    a *= generator.random((n, n), dtype=np.float32) >= zeros
    b = generator.standard_normal((n, n), dtype=np.float32)
    return cuop.asarray(a, device=device), cuop.asarray(b, device=device)


def error(product, a, b, wire):
    """Of some rows of the product."""
    n = a.shape[0]
    some = np.linspace(0, n - 1, ROWS_CHECKED).astype(int)
    mine = np.asarray(product.to("cpu")).astype(np.float64)[some]
    left = np.asarray(a.to("cpu")).astype(np.float64)[some]
    right = np.asarray(b.to("cpu")).astype(np.float64)
    bound = np.linalg.norm(left, axis=1).max() * np.linalg.norm(right, axis=0).max() / n
    return np.abs(mine - left @ right).max() / (EPSILON[wire] * np.sqrt(n) * bound)


def measured(comm, n, zeros, calls, device, rounds):
    """On rank 0 of each call its milliseconds, bytes, strategy and error."""
    a, b = operands(n, zeros, device) if comm.rank == 0 else (None, None)
    comm.barrier()
    found = []
    for name, _, options in calls:
        dist.matmul_from_root(comm, a, b, **options)
        before = comm.bytes_sent
        dist.matmul_from_root(comm, a, b, **options)
        sent = cuop.tensor(comm.bytes_sent - before, dtype="int64", device="cpu")
        found.append(
            {
                "name": name,
                "strategy": dist.last_report().plan.strategy,
                "bytes": int(dist.all_reduce(comm, sent, "sum")),
                "times": [],
            }
        )
    for _ in range(rounds):
        for each, (_, _, options) in zip(found, calls, strict=True):
            comm.barrier()
            begin = time.perf_counter()
            dist.matmul_from_root(comm, a, b, **options)
            cuop.synchronize()
            each["times"].append(time.perf_counter() - begin)
    for each in found:
        each["ms"] = statistics.median(slowest(comm, each["times"])) * 1e3
    # Behind all times: the threads of NumPy's products spin on for a while, on all cores.
    for each, (_, wire, options) in zip(found, calls, strict=True):
        product = dist.matmul_from_root(comm, a, b, **options)
        each["error"] = error(product, a, b, wire) if comm.rank == 0 else None
        del product
    time.sleep(0.2)
    comm.barrier()
    return found


def lines_of(n, zeros, found):
    plain = found[0]["ms"]
    return [
        f"| {n} | {zeros:.0%} | {each['name']} | {each['strategy']} | {each['ms']:.3g} | "
        f"{plain / each['ms']:.2f} | {each['bytes'] / 2**20:.2f} | {each['error']:.2f} |"
        for each in found
    ]


def cases():
    """Zeros, and the calls to compare; the first is the plain one."""
    plain = ("plain", "float32", {})
    narrow = [(wire, wire, {"wire": dist.Wire.narrow(wire)}) for wire in ("float16", "bfloat16")]
    by_row = [
        (f"{name}, rows", wire, {**options, "strategy": "row"})
        for name, wire, options in (plain, *narrow)
    ]
    yield 0.0, [plain, *narrow, *by_row]
    sparse = [
        ("sparse wire and product", "float32", {"wire": dist.Wire.sparse(), "product": "auto"}),
        ("sparse wire", "float32", {"wire": dist.Wire.sparse()}),
        ("sparse product", "float32", {"product": "auto"}),
    ]
    for zeros in SPARSITIES:
        yield zeros, [plain, *sparse]


def main():
    """Measure all sizes."""
    parser = arguments(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1024, 4096, 16384])
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()

    def work(comm, device):
        dist.calibrate(comm)
        found = []
        for n in options.sizes:
            for zeros, calls in cases():
                each = measured(comm, n, zeros, calls, device, options.rounds)
                if comm.rank == 0:
                    found += lines_of(n, zeros, each)
        return found

    found, command = on_ranks(work, options, "wires.py")
    if found is None:
        return
    lines = [
        *origin(f"{command} --sizes {' '.join(map(str, options.sizes))}"),
        "",
        "| n x n | zeros of A | call | strategy | ms | plain / it | MiB sent | error |",
        "|---|---|---|---|---|---|---|---|",
        *found,
    ]
    tell("Products whose blocks travel narrow or sparse", lines, options.table)


if __name__ == "__main__":
    main()
