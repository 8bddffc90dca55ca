"""Products of 16-bit floats whose rows fill no 16 bytes: cuOP beside PyTorch, and what pads alone gain.

    python benchmarks/short_rows.py

Milliseconds from a call to its end on the GPU, the median of five after three. "As it lies" is PyTorch's product, "rows at 16 bytes"
the same of views into wider matrices, "K and N padded" of matrices with zeros up to multiples of 8.
"""

import statistics

import torch

import cuop

SHAPES = [
    (4127, 25280, 20615), (10930, 4470, 11849), (2011, 2602, 12718), (4857, 2468, 6191),
    (29016, 2306, 29532), (1001, 1003, 1005), (8191, 8191, 8191), (8192, 8192, 8192),
    (4096, 4096, 4095), (4096, 4095, 4096), (300, 20001, 300), (20001, 77, 2001),
]  # fmt: skip
STEP = 8


def milliseconds(call):
    for _ in range(3):
        call()
    times = []
    for _ in range(5):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        begin.record()
        call()
        cuop.synchronize()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def wide(x, rows):
    """With zeros up to whole steps of columns, and of rows where that is wanted."""
    height = -(-x.shape[0] // STEP) * STEP if rows else x.shape[0]
    made = x.new_zeros((height, -(-x.shape[1] // STEP) * STEP))
    made[: x.shape[0], : x.shape[1]] = x
    return made


def main():
    """Print a line a shape."""
    print("| sides | as it lies | rows at 16 bytes | K and N padded | cuOP | as it lies / cuOP |")
    print("|---|---|---|---|---|---|")
    for m, k, n in SHAPES:
        a, b = (torch.randn(s, device="cuda").to(torch.bfloat16) for s in ((m, k), (k, n)))
        plain = milliseconds(lambda a=a, b=b: a @ b)
        wide_a, wide_b = wide(a, False), wide(b, True)
        rows = milliseconds(lambda x=wide_a[:, :k], y=wide_b[:k, :n]: x @ y)
        both = milliseconds(lambda x=wide_a, y=wide_b: x @ y)
        ours_a, ours_b = cuop.asarray(a), cuop.asarray(b)
        ours = milliseconds(lambda x=ours_a, y=ours_b: cuop.matmul(x, y))
        print(
            f"| {m} x {k}, {k} x {n} | {plain:.3g} | {rows:.3g} | {both:.3g} | {ours:.3g} | {plain / ours:.2f} |"
        )


if __name__ == "__main__":
    main()
