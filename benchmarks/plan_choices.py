"""Whether the planner chooses the fastest plan, over random shapes of products: predicted beside measured.

    mpirun --bind-to none -np 2 python benchmarks/plan_choices.py --table table.md --json raw.json
    python benchmarks/plan_choices.py --ranks 2 --device cpu --largest 3000 --shapes 40

Ranks are the processes of mpirun or threads of this one (which wait for Python's lock too), rank r on GPU r. Each shape is multiplied by the planner's choice and by
every strategy that it weighed, forced, in turns; a time is the median of several calls and their wait on the
slowest rank, all starting together, after a first one. "rooted": operands and result on rank 0. "sharded": operands in
rows over the ranks, the result where it is made. A choice is good where its strategy takes at most 5 % more
than the fastest one. Errors are those of the predicted seconds of the plans chosen.
"""

import json
import math
import statistics
import time
from collections import Counter
from pathlib import Path

import numpy as np
from launched import arguments, on_ranks, slowest, tell

import cuop
from cuop import dist

NEAR = 1.05


def shapes(count, smallest, largest, most_flops, seed):
    """(m, k, n, dtype): each dimension uniform in its logarithm."""
    generator = np.random.default_rng(seed)
    low, high = np.log(smallest), np.log(largest)
    found = []
    while len(found) < count:
        m, k, n = (int(size) for size in np.exp(generator.uniform(low, high, 3)).round())
        dtype = "float32" if generator.uniform() < 0.7 else "bfloat16"
        if 2.0 * m * k * n <= most_flops * (1 if dtype == "float32" else 8):
            found.append((m, k, n, dtype))
    return found


def noise(shape, dtype, device, seed):
    """Random numbers, repeated: products take the time of random ones."""
    count = math.prod(shape)
    some = np.random.default_rng(seed).standard_normal(min(count, 1 << 20)).astype(np.float32)
    short = cuop.asarray(some, device=device).astype(dtype)
    whole = cuop.tile(short, -(-count // some.size)) if count > some.size else short
    return cuop.reshape(whole[:count], shape)


class Multiplied:
    """The product of one shape by any strategy, on the calling rank."""

    def __init__(self, comm, kind, sizes, dtype, device):
        self.comm, self.kind = comm, kind
        m, k, n = sizes
        on_root = comm.rank == 0
        operands = [
            noise(s, dtype, device, i) if on_root else None for i, s in enumerate([(m, k), (k, n)])
        ]
        if kind == "sharded":
            rows = dist.Sharding(dist.Mesh.line(comm.size), dist.P("r", None))
            operands = [dist.DistTensor.from_root(comm, x).redistribute(rows) for x in operands]
        self.operands = operands

    def __call__(self, strategy=""):
        if self.kind == "rooted":
            return dist.matmul_from_root(self.comm, *self.operands, strategy=strategy)
        return dist.matmul(*self.operands, strategy=strategy)

    def seconds(self, strategy):
        self.comm.barrier()
        begin = time.perf_counter()
        self(strategy)
        cuop.synchronize()
        return time.perf_counter() - begin


def described(plan):
    steps = [
        {
            key: getattr(step, key)
            for key in ("kind", "bytes", "rank_bytes", "messages", "flops", "seconds")
        }
        for step in plan.steps
    ]
    return {"detail": plan.detail, "predicted": plan.seconds + plan.call_seconds, "steps": steps}


def measured(comm, kind, shape, device, rounds):
    """On rank 0: the choice and, of each strategy, its plan and its seconds."""
    *sizes, dtype = shape
    multiplied = Multiplied(comm, kind, sizes, dtype, device)
    multiplied()
    plan = dist.last_report().plan
    chosen = plan.strategy
    strategies = sorted({each.strategy for each in plan.candidates if each.is_feasible})
    found = {}
    for strategy in strategies:
        multiplied(strategy)
        found[strategy] = described(dist.last_report().plan) | {"times": []}
    for _ in range(rounds):
        for strategy in strategies:
            found[strategy]["times"].append(multiplied.seconds(strategy))
    for each in found.values():
        each["times"] = slowest(comm, each["times"])
        each["seconds"] = statistics.median(each["times"])
    return {"kind": kind, "shape": shape, "chosen": chosen, "strategies": found}


def loss(each):
    """The choice's time over that of the fastest strategy."""
    best = min(other["seconds"] for other in each["strategies"].values())
    return each["strategies"][each["chosen"]]["seconds"] / best


def error(each):
    """Of the predicted seconds of the choice, in parts of those measured."""
    chosen = each["strategies"][each["chosen"]]
    return abs(chosen["predicted"] / chosen["seconds"] - 1)


def summary(kind, results):
    """The line of the table that tells of this kind."""
    losses, errors = [loss(each) for each in results], [error(each) for each in results]
    good = sum(each <= NEAR for each in losses) / len(results)
    chosen = Counter(each["chosen"] for each in results)
    counts = ", ".join(f"{name} {count}" for name, count in sorted(chosen.items()))
    return (
        f"| {kind} | {len(results)} | {counts} | {good:.1%} | "
        f"{np.quantile(losses, 0.9):.2f} | {max(losses):.2f} | {np.median(errors):.1%} | "
        f"{np.quantile(errors, 0.9):.1%} |"
    )


def worst(results, count=8):
    """Lines of the choices that lost most."""
    lines = []
    for each in sorted(results, key=loss, reverse=True)[:count]:
        m, k, n, dtype = each["shape"]
        figures = "; ".join(
            f"{name} {found['seconds'] * 1e3:.3g} ({found['predicted'] * 1e3:.3g})"
            for name, found in sorted(each["strategies"].items(), key=lambda one: one[1]["seconds"])
        )
        lines.append(
            f"| {each['kind']} | {m}x{k}, {k}x{n} {dtype} | {each['chosen']} | {loss(each):.2f} | {figures} |"
        )
    return lines


def main():
    """Measure the shapes and tell how good the choices were."""
    parser = arguments(__doc__)
    parser.add_argument("--shapes", type=int, default=200)
    parser.add_argument("--smallest", type=int, default=64)
    parser.add_argument("--largest", type=int, default=32768)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--most-flops", type=float, default=1.2e12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", default=["rooted", "sharded"])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    wanted = shapes(
        options.shapes, options.smallest, options.largest, options.most_flops, options.seed
    )

    def work(comm, device):
        machine = dist.calibrate(comm, again=True)
        found = {}
        for kind in options.kinds:
            found[kind] = [measured(comm, kind, shape, device, options.rounds) for shape in wanted]
            if comm.rank == 0:
                print(summary(kind, found[kind]), flush=True)
        return (machine.to_json(), found) if comm.rank == 0 else None

    begin = time.perf_counter()
    results, command = on_ranks(work, options, "plan_choices.py")
    if results is None:
        return
    machine, found = results
    lines = [
        f"- command: {command} --shapes {options.shapes} --smallest {options.smallest} --largest {options.largest} "
        f"--most-flops {options.most_flops:g} --seed {options.seed}",
        f"- date: {time.strftime('%Y-%m-%d')}, {time.perf_counter() - begin:.0f} s",
        f"- figures of a rank: {machine}",
        "",
        "| operands | shapes | chosen | within 5 % of the fastest | 90 % lose at most | worst | "
        "median error of predictions | 90 % err at most |",
        "|---|---|---|---|---|---|---|---|",
        *(summary(kind, results) for kind, results in found.items()),
        "",
        "The choices that lost most, milliseconds measured (predicted):",
        "",
        "| operands | shape | chosen | loss | strategies |",
        "|---|---|---|---|---|",
        *(line for results in found.values() for line in worst(results)),
    ]
    tell("Choices of plans", lines, options.table)
    if options.json:
        options.json.write_text(
            json.dumps({"machine": json.loads(machine), **found}), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
