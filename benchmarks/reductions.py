"""Reductions on a GPU beside PyTorch: short and long rows and columns, and whole tensors.

    python benchmarks/reductions.py --table table.md

Microseconds of a call among many without a wait between, the median of five series. "loss" is cuOP's time over
PyTorch's; the last line names the worst.
"""

import argparse
import functools
import statistics
import time
from pathlib import Path

import torch

import cuop

ELEMENTS = 1 << 24
LENGTHS = [2, 3, 5, 7, 9, 12, 15, 16, 20, 24, 31, 32, 33, 48, 63, 64, 100, 128, 129, 1000, 1023]
FEW = [(7, 1000), (16, 4096), (64, 4096), (1000, 7), (4096, 16), (4096, 64)]
LARGE = [512, 2048, 3000, 8192, 16384, 23168]


def microseconds(call, wait):
    for _ in range(2):
        call()
    wait()
    begin = time.perf_counter()
    call()
    wait()
    many = max(3, min(40, int(0.006 / (time.perf_counter() - begin))))
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(many):
            call()
        wait()
        times.append((time.perf_counter() - begin) / many * 1e6)
    return statistics.median(times)


def cases():
    """(operation, shape, dim, dtype): rows have dim 1, columns 0, whole tensors None."""
    floats = [torch.float16, torch.float32, torch.float64, torch.complex64]
    for dtype in floats:
        for length in LENGTHS:
            yield "sum", (ELEMENTS // length, length), 1, dtype
            yield "sum", (length, ELEMENTS // length), 0, dtype
        for shape in FEW:
            yield "sum", shape, int(shape[0] > shape[1]), dtype
    for operation in ("var", "argmax", "amax", "prod"):
        for length in (3, 7, 16, 31, 33, 48, 1000):
            yield operation, (ELEMENTS // length, length), 1, torch.float32
            yield operation, (length, ELEMENTS // length), 0, torch.float32
    for side in LARGE:
        for dim in (None, 0, 1):
            yield "sum", (side, side), dim, torch.float32


def measure(operation, shape, dim, dtype):
    x = torch.ones(shape, dtype=dtype, device="cuda")
    ours, theirs = cuop.asarray(x), getattr(x, operation)
    function = cuop.max if operation == "amax" else getattr(cuop, operation)
    peer = theirs if dim is None else functools.partial(theirs, dim=dim)
    mine = microseconds(lambda: function(ours, axis=dim), lambda: cuop.synchronize("cuda"))
    return mine, microseconds(peer, torch.cuda.synchronize)


def main():
    """Print a line a case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", help="file to write the table to")
    table = parser.parse_args().table
    device = torch.cuda.get_device_name()
    lines = ["- command: python benchmarks/reductions.py"]
    lines += [f"- GPU: {device}, PyTorch {torch.__version__}", ""]
    lines += [
        "| operation | shape | dim | dtype | PyTorch | cuOP | loss |",
        "|---|---|---|---|---|---|---|",
    ]
    worst = (0.0, "")
    for operation, shape, dim, dtype in cases():
        mine, peer = measure(operation, shape, dim, dtype)
        name = f"{operation} | {' x '.join(map(str, shape))} | {dim} | {str(dtype).removeprefix('torch.')}"
        lines.append(f"| {name} | {peer:.1f} | {mine:.1f} | {mine / peer:.2f} |")
        worst = max(worst, (mine / peer, name.replace(" |", ",")))
    lines += ["", f"The worst: {worst[0]:.2f}, {worst[1]}"]
    text = "\n".join(lines) + "\n"
    print(text)
    if table:
        Path(table).write_text("# Reductions beside PyTorch\n\n" + text, encoding="utf-8")


if __name__ == "__main__":
    main()
