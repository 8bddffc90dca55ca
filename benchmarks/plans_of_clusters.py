"""What is planned for clusters that one need not have: 8, 64 and 1024 GPUs, eight to a host.

    python benchmarks/plans_of_clusters.py > table.md

Operands lie in rows over the ranks and results stay where they are made. Nothing is computed: the
figures of a rank (FIGURES) go in, predicted times come out. Hosts of eight GPUs are linked by a
slower network, so that a rank has two kinds of links.
"""

import argparse
import time

from cuop import dist, executor

# One H200 as measured on machines with two of them (gpu-ranks of 2026-11-24): products of
# 16384 x 16384, an addition, a redistribution, an exchange of 256 bytes. The network is assumed: a
# card of 400 Gbit/s for each GPU.
FIGURES = {
    "flops": 5.2e13,
    "half_speed": 13.0,
    "double_speed": 1.1,
    "fft_speed": 0.1,
    "long_fft_speed": 0.1,
    "transposed_speed": 0.8,
    "memory_bandwidth": 4.0e12,
    "link_bandwidth": 3.7e11,
    "latency": 2.2e-5,
    "message_overhead": 2e-6,
    "network_bandwidth": 5e10,
    "network_latency": 3e-5,
    "network_overhead": 2e-6,
    "ranks_per_host": 8,
    "memory": 141_000_000_000,
}
RANKS = (8, 64, 1024)
CALLS = [
    ("matmul", lambda: executor.matmul(), [(32768, 32768), (32768, 32768)], "float32"),
    ("matmul", lambda: executor.matmul(), [(131072, 131072), (131072, 131072)], "bfloat16"),
    ("matmul", lambda: executor.matmul(), [(1 << 20, 1024), (1024, 1024)], "float32"),
    ("fft2d", lambda: executor.fft2d(), [(65536, 65536)], "complex64"),
    ("sum of all", lambda: executor.sum(), [(1 << 18, 1 << 16)], "float32"),
    ("sum of columns", lambda: executor.sum(0), [(1 << 18, 1 << 16)], "float32"),
    ("add", lambda: executor.add(), [(1 << 18, 1 << 16)] * 2, "float32"),
    (
        "stencil",
        lambda: executor.stencil_pass(sweeps=50),
        [(1 << 17, 1 << 17), (3, 3)],
        "float32",
    ),
]


def sizes_text(shapes):
    """(4, 3), (3, 2) -> 4x3, 3x2."""
    return ", ".join("x".join(map(str, shape)) for shape in shapes)


def rows():
    """A line of the table for each call and number of ranks."""
    machine = dist.Machine()
    for figure, value in FIGURES.items():
        setattr(machine, figure, value)
    for name, call, shapes, dtype in CALLS:
        for ranks in RANKS:
            begin = time.perf_counter()
            plan = executor.plan_ranks(
                call(), shapes, [dtype] * len(shapes), ranks=ranks, in_parts=True, machine=machine
            )
            took = time.perf_counter() - begin
            compute = sum(step.seconds for step in plan.steps if step.kind == "compute")
            network = max((step.network_bytes for step in plan.steps), default=0)
            yield (
                f"| {name} {sizes_text(shapes)} {dtype} | {ranks} | {plan.strategy} {plan.detail} "
                f"| {plan.seconds * 1e3:.3g} | {compute * 1e3:.3g} | {plan.floor * 1e3:.3g} "
                f"| {network / 1e6:.3g} | {plan.memory_per_rank / 2**30:.3g} | {took:.2g} |"
            )


def main():
    """Print the table."""
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    print("Figures of a rank:", ", ".join(f"{name} {value:g}" for name, value in FIGURES.items()))
    print()
    print(
        "| call | GPUs | plan | predicted ms | of that arithmetic | floor ms "
        "| MB a rank between hosts | GiB a rank | planned in s |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for row in rows():
        print(row, flush=True)


if __name__ == "__main__":
    main()
