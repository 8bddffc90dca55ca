"""einsum on one GPU beside PyTorch's.

    python benchmarks/einsum.py --table table.md

Microseconds of a call: ten calls and a wait, the best of several. float32 in IEEE precision on both sides;
the error is the largest against PyTorch in float64, divided by the largest value.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch

import cuop

CALLS = 10
CASES = [
    ("ij,jk->ik", (4096, 4096), (4096, 4096)),
    ("bij,bjk->bik", (64, 1024, 1024), (64, 1024, 1024)),
    ("bqhd,bkhd->bhqk", (8, 1024, 16, 64), (8, 1024, 16, 64)),
    ("bhqk,bkhd->bqhd", (8, 16, 1024, 1024), (8, 1024, 16, 64)),
    ("ijk,jl,km->ilm", (256, 256, 256), (256, 256), (256, 256)),
    ("abcd,cdef->abef", (32,) * 4, (32,) * 4),
    ("ii->i", (4096, 4096)),
    ("ij->ji", (8192, 8192)),
    ("i,j->ij", (8192,), (8192,)),
    ("bi,bi->b", (100000, 256), (100000, 256)),
    ("ab,bc,cd,de->ae", (1000, 20), (20, 3000), (3000, 30), (30, 1000)),
    ("bij,bjk->bik", (20000, 4, 4), (20000, 4, 4)),
]


def best_us(call, repeats=5):
    """The shortest of several rounds, after two that compile and choose."""
    times = []
    for _ in range(repeats + 2):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        torch.cuda.synchronize()
        cuop.synchronize()
        times.append((time.perf_counter() - begin) * 1e6 / CALLS)
    return min(times[2:])


def row(equation, *shapes):
    """A line of the table."""
    theirs = [torch.randn(*shape, device="cuda") for shape in shapes]
    ours = [cuop.from_dlpack(tensor) for tensor in theirs]
    got = np.asarray(cuop.einsum(equation, *ours).to("cpu")).astype(np.float64)
    exact = torch.einsum(equation, *[tensor.double() for tensor in theirs]).cpu().numpy()
    error = np.abs(got - exact).max() / np.abs(exact).max()
    mine = best_us(lambda: cuop.einsum(equation, *ours))
    peer = best_us(lambda: torch.einsum(equation, *theirs))
    sizes = ", ".join("x".join(map(str, shape)) for shape in shapes)
    return f"| {equation} | {sizes} | {mine:.1f} | {peer:.1f} | {peer / mine:.2f} | {error:.1e} |"


def main():
    """Measure all cases."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--table", type=Path)
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    lines = ["| equation | sizes | cuOP | PyTorch | ratio | error |", "|---|---|---|---|---|---|"]
    for case in CASES:
        lines.append(row(*case))
        print(lines[-1], flush=True)
    if arguments.table:
        arguments.table.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
