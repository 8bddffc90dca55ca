"""Sweeps of stencils and of Jacobi's method on one GPU beside PyTorch's convolution.

    python benchmarks/stencil_sweeps.py --table table.md

Microseconds a sweep, the best of several calls. "one": a call of one sweep; "of 48": a call of 48, in
which several are made in one pass over memory. Floor: the grid read and written once at the bandwidth of
a copy that is measured here.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch

import cuop

SWEEPS = 48
FIVE = np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]]) * 0.1


def best_us(call, repeats=5):
    """The shortest of several calls and their waits, after one that compiles."""
    times = []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e6)
    return min(times[1:])


def stencils():
    generator = np.random.default_rng(1)
    yield "5 points", FIVE
    yield "9 points", generator.random((3, 3)) * 0.1
    yield "25 points", generator.random((5, 5)) * 0.04


def rows():
    torch.backends.cudnn.allow_tf32 = False
    for dtype in ("float32", "float64"):
        for shape in ((8192, 8192), (8191, 8190), (20480, 20480), (300, 100_000)):
            x = torch.rand(shape, dtype=getattr(torch, dtype), device="cuda")
            ours = cuop.asarray(x)
            copied = torch.empty_like(x)
            floor = best_us(lambda to=copied, of=x: to.copy_(of))
            for name, weights in stencils():
                kernel = cuop.asarray(weights.astype(dtype))
                taps = torch.from_numpy(weights).to(x)[None, None]
                pad = weights.shape[0] // 2
                theirs = best_us(
                    lambda of=x, k=taps, p=pad: torch.nn.functional.conv2d(
                        of[None, None], k, padding=p
                    )
                )
                one = best_us(lambda of=ours, k=kernel: cuop.stencil2d(of, k))
                many = best_us(lambda of=ours, k=kernel: cuop.stencil2d(of, k, "zero", SWEEPS))
                yield f"{name}, {shape[0]} x {shape[1]} {dtype}", theirs, floor, one, many / SWEEPS
            one = best_us(lambda of=ours: cuop.jacobi2d(of, of, 1.0, "zero", 1, 0.0))
            many = best_us(lambda of=ours: cuop.jacobi2d(of, of, 1.0, "zero", SWEEPS, 0.0))
            yield f"Jacobi, {shape[0]} x {shape[1]} {dtype}", None, 1.5 * floor, one, many / SWEEPS


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--table", type=Path)
    given = arguments.parse_args()
    cuop.set_current_device("cuda:0")
    lines = [
        "| case | PyTorch conv2d | floor of one sweep | one | of 48 | PyTorch / of 48 |",
        "|---|---|---|---|---|---|",
    ]
    for case, theirs, floor, one, many in rows():
        peer = (f"{theirs:.0f}", f"{theirs / many:.1f}") if theirs else ("", "")
        lines.append(f"| {case} | {peer[0]} | {floor:.0f} | {one:.0f} | {many:.0f} | {peer[1]} |")
        print(lines[-1], flush=True)
    if given.table:
        given.table.write_text(
            "# Several sweeps in one pass over memory\n\n"
            "- command: python benchmarks/stencil_sweeps.py\n"
            f"- date: {time.strftime('%Y-%m-%d')}\n- GPU: {torch.cuda.get_device_name(0)}, "
            f"PyTorch {torch.__version__}, its convolutions in IEEE precision\n\n"
            "Microseconds a sweep, the best of five calls.\n\n" + "\n".join(lines) + "\n"
        )


if __name__ == "__main__":
    main()
