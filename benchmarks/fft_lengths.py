"""FFTs of many lengths on the CPU beside scipy.fft, by the largest prime factor of the length.

    CUOP_THREADS=1 python benchmarks/fft_lengths.py            # 150 lengths a class, from 50 to 60 000
    python benchmarks/fft_lengths.py --count 20 --dtypes complex64
    python benchmarks/fft_lengths.py --transform dct2

Batches of a million numbers, as many threads each as cuOP has; both take turns, each time is the
shortest of some calls. A ratio is the peer's time over cuOP's; the worst lengths are named.
"""

import argparse
import math
import random

import numpy as np
import scipy.fft
from sparse_products import best

import cuop

PEERS = {
    "fft": scipy.fft.fft,
    "rfft": scipy.fft.rfft,
    "dct2": lambda x, **options: scipy.fft.dct(x, 2, **options),
    "dct3": lambda x, **options: scipy.fft.dct(x, 3, **options),
}
CLASSES = {"to 7": (2, 7), "11 to 29": (11, 29), "31 to 199": (31, 199), "from 211": (211, 10**9)}
ELEMENTS = 1 << 20


def largest_factor(n: int) -> int:
    """The largest prime that divides n."""
    largest, p = 1, 2
    while p * p <= n:
        while n % p == 0:
            largest, n = p, n // p
        p += 1
    return max(largest, n)


def lengths(low: int, high: int, count: int, seed: int) -> list[int]:
    """Different lengths, spread evenly by size, whose largest prime lies in the range."""
    draw, found = random.Random(seed), set()
    for _ in range(200 * count):
        n = round(50 * (60000 / 50) ** draw.random())
        if low <= largest_factor(n) <= high:
            found.add(n)
        if len(found) == count:
            break
    return sorted(found)


def ratio(name: str, n: int, dtype: str, rounds: int) -> float:
    """The peer's time over cuOP's for a batch of lines of that length."""
    shape = (max(1, ELEMENTS // n), n)
    x = np.random.default_rng(n).standard_normal(shape).astype(dtype)
    own, workers = cuop.tensor(x), cuop.thread_count()
    transform, theirs = getattr(cuop.fft, name), PEERS[name]
    mine, peer = best(lambda: transform(own), lambda: theirs(x, workers=workers), rounds=rounds)
    return peer / mine


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=150, help="lengths of a class")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--transform", default="fft", choices=PEERS)
    parser.add_argument(
        "--dtypes", nargs="*", choices=["complex64", "complex128", "float32", "float64"]
    )
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    is_complex = arguments.transform == "fft"
    dtypes = ["complex64", "complex128"] if is_complex else ["float32", "float64"]
    print("| largest prime factor | dtype | lengths | ratio, geometric mean | slower | the worst |")
    print("|---|---|---|---|---|---|")
    for name, (low, high) in CLASSES.items():
        chosen = lengths(low, high, arguments.count, arguments.seed)
        for dtype in arguments.dtypes or dtypes:
            found = sorted(
                (ratio(arguments.transform, n, dtype, arguments.rounds), n) for n in chosen
            )
            mean = math.exp(sum(math.log(each) for each, _ in found) / len(found))
            slower = sum(each < 1 for each, _ in found)
            worst = ", ".join(f"{n} ({each:.2f})" for each, n in found[:4])
            print(
                f"| {name} | {dtype} | {len(found)} | {mean:.2f} | {slower} | {worst} |", flush=True
            )


if __name__ == "__main__":
    main()
