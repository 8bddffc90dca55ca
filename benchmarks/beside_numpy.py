"""Many small calls on the CPU beside NumPy, one thread each: what the suites leave out.

    CUOP_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/beside_numpy.py
    python benchmarks/beside_numpy.py --sizes 1000x1000 --dtypes float32 --least 1.2

Both take turns over the same two-dimensional arrays; each time is the shortest of some calls. A ratio is
cuOP's time over NumPy's: above 1 is a loss. Every call whose ratio is above --least is listed.
"""

import argparse
import math

import numpy as np
from sparse_products import best

import cuop

DTYPES = "float32 float64 int32 int64 uint8 bool float16 complex64".split()


class Operands:
    """The same arrays for both."""

    def __init__(self, rows: int, columns: int, dtype: str):
        draw = np.random.default_rng(rows)

        def noise():
            values = draw.random((rows, columns)) * 100 + 1
            return (values + 1j * values if dtype == "complex64" else values).astype(dtype)

        self.numpy = [noise(), noise()]
        self.cuop = [cuop.tensor(x) for x in self.numpy]
        self.places = draw.integers(0, min(rows, columns), min(rows, columns))
        self.mask = draw.random((rows, columns)) > 0.5
        self.order = draw.permutation(rows * columns)
        self.rising = np.sort(self.numpy[1], axis=None)

    def numbers(self) -> list:
        """Arrays beside x and y."""
        return [self.places, self.mask, self.order, self.rising]


def calls(lib, x, y, places, mask, order, rising) -> dict:
    """Calls that read alike in both."""
    flat = y.reshape(x.T.shape)  # of its shape, and in another order
    line = x.reshape(-1)

    def set_rows():
        x[places] = y[0]

    def move_rows():
        x[:, 3:] = y[:, :-3]

    return {
        "x + y": lambda: x + y,
        "x * y": lambda: x * y,
        "x + 2": lambda: x + 2,
        "2 * x": lambda: 2 * x,
        "x / y": lambda: x / y,
        "x // y": lambda: x // y,
        "x % y": lambda: x % y,
        "x // 7": lambda: x // 7,
        "x % 7": lambda: x % 7,
        "x ** 2": lambda: x**2,
        "x ** 1.5": lambda: x**1.5,
        "x > y": lambda: x > y,
        "x == y": lambda: x == y,
        "maximum": lambda: lib.maximum(x, y),
        "where": lambda: lib.where(mask, x, y),
        "clip": lambda: lib.clip(x, 2, 50),
        "abs": lambda: lib.abs(x),
        "sqrt": lambda: lib.sqrt(x),
        "x + a row": lambda: x + y[0],
        "x + a column": lambda: x + y[:, :1],
        "x.T + y.T": lambda: x.T + y.T,
        "x.T + a row": lambda: x.T + y.T[0],
        "maximum into x.T": lambda: lib.maximum(x.T, y.T, out=x.T),
        "maximum with y, into x.T": lambda: lib.maximum(x.T, flat, out=x.T),
        "sum": lambda: lib.sum(x),
        "sum of columns": lambda: lib.sum(x, axis=0),
        "sum of rows": lambda: lib.sum(x, axis=1),
        "prod of rows": lambda: lib.prod(x, axis=1),
        "mean": lambda: lib.mean(x),
        "var": lambda: lib.var(x),
        "max": lambda: lib.max(x),
        "max of columns": lambda: lib.max(x, axis=0),
        "any": lambda: lib.any(x),
        "all": lambda: lib.all(x),
        "argmax": lambda: lib.argmax(x),
        "argmax of rows": lambda: lib.argmax(x, axis=1),
        "cumsum of rows": lambda: lib.cumsum(x, 1),
        "cumsum of columns": lambda: lib.cumsum(x, 0),
        "rows of x": lambda: x[places],
        "columns of x": lambda: x[:, places],
        "elements of x": lambda: x[mask],
        "set rows": set_rows,
        "move rows by 3": move_rows,
        "concatenate": lambda: lib.concatenate([x, y]),
        "stack": lambda: lib.stack([x, y], 2),
        "roll": lambda: lib.roll(x, 3, 1),
        "matrix @ row": lambda: x @ y[0],
        "row @ row": lambda: x[0] @ y[0],
        "take in random order": lambda: lib.take(line, order),
        "sort": lambda: lib.sort(line),
        "sort rows": lambda: lib.sort(x, axis=1),
        "sort columns": lambda: lib.sort(x, axis=0),
        "argsort": lambda: lib.argsort(line, stable=True),
        "argsort rows": lambda: lib.argsort(x, axis=1, stable=True),
        "searchsorted": lambda: lib.searchsorted(rising, line),
        "unique": lambda: lib.unique(line),
        "unique with counts": lambda: lib.unique(line, return_counts=True),
        "unique with inverse": lambda: lib.unique(line, return_inverse=True),
    }


def copies(own, peer) -> dict:
    """Pairs of calls that have other names in NumPy."""
    views = {
        "copy": lambda x: x,
        "copy of x.T": lambda x: x.T,
        "copy of x[::2, ::3]": lambda x: x[::2, ::3],
        "copy of x[:, 3:]": lambda x: x[:, 3:],
        "copy of x flipped": lambda x: x[::-1, ::-1],
    }
    pairs = {
        name: (lambda view=view: view(own).clone(), lambda view=view: view(peer).copy())
        for name, view in views.items()
    }
    if peer.dtype.kind != "c":
        for dtype in ("float32", "float64", "int32"):
            pairs[f"as {dtype}"] = (
                lambda dtype=dtype: own.to(dtype),
                lambda dtype=dtype: peer.astype(dtype),
            )
    return pairs


def ratios(rows: int, columns: int, dtype: str, rounds: int, wanted: str) -> dict:
    """Of each call that both have for the dtype: the ratio and both times in milliseconds."""
    given = Operands(rows, columns, dtype)
    mine = calls(cuop, *given.cuop, *map(cuop.tensor, given.numbers()))
    peers = calls(np, *given.numpy, *given.numbers())
    pairs = {name: (mine[name], peers[name]) for name in mine}
    found = {}
    for name, pair in (pairs | copies(given.cuop[0], given.numpy[0])).items():
        if wanted not in name:
            continue
        try:
            own, peer = best(*pair, rounds=rounds)
        except (TypeError, cuop.DTypeError):  # not of this dtype
            continue
        found[name] = (own / peer, own, peer)
    return found


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sizes", nargs="*", default=["1000x1000", "1001x37", "30x30001"])
    parser.add_argument("--dtypes", nargs="*", default=DTYPES, choices=DTYPES)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument(
        "--least", type=float, default=1.5, help="ratio from which a call is listed"
    )
    parser.add_argument("--calls", default="", help="only those with this text in their names")
    options = parser.parse_args()
    print("| size | dtype | calls | ratio, geometric mean | slower | listed, milliseconds |")
    print("|---|---|---|---|---|---|")
    for size in options.sizes:
        rows, columns = map(int, size.split("x"))
        for dtype in options.dtypes:
            found = ratios(rows, columns, dtype, options.rounds, options.calls)
            mean = math.exp(sum(math.log(each[0]) for each in found.values()) / len(found))
            slower = sum(each[0] > 1.03 for each in found.values())
            worst = sorted(((*each, name) for name, each in found.items()), reverse=True)
            listed = ", ".join(
                f"{name} {ratio:.2f} ({own:.3g}, {peer:.3g})"
                for ratio, own, peer, name in worst
                if ratio > options.least
            )
            print(
                f"| {size} | {dtype} | {len(found)} | {mean:.2f} | {slower} | {listed} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
