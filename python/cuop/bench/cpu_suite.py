"""The CPU cases: NumPy, SciPy, numexpr and oneDNN beside cuOP on the same cores."""

import os
from collections.abc import Iterator

import numpy as np

from cuop.bench.measure import Case

_LARGE = 1 << 24


def cases() -> Iterator[Case]:
    """All cases, made one after the other so that only one holds its buffers.

    Where a peer takes an output, it writes the same memory as cuOP: which pages a buffer got can
    decide a tenth of the time.
    """
    yield from _calls()
    yield from _products()
    yield from _elementwise()
    yield from _chains()
    yield from _reductions()
    yield from _rows()
    yield from _transforms()


def _random(shape, dtype: str, count: int = 1) -> list[np.ndarray]:
    generator = np.random.default_rng(1)
    return [generator.standard_normal(shape).astype(dtype) for _ in range(count)]


def _calls() -> Iterator[Case]:
    """What a call costs beside its work: there are eight elements, or eight rows of them."""
    import cuop

    a, b = _random((8, 8), "float32", 2)
    x, y = cuop.asarray(a), cuop.asarray(b)
    r, s, u, v = a[0].copy(), b[0].copy(), cuop.asarray(a[0].copy()), cuop.asarray(b[0].copy())
    cases = [
        ("add", lambda i: cuop.add(u, v), lambda i: np.add(r, s)),
        ("sum", lambda i: cuop.sum(u), lambda i: np.sum(r)),
        ("slice", lambda i: u[1:], lambda i: r[1:]),
        ("empty", lambda i: cuop.empty(8), lambda i: np.empty(8, np.float32)),
        ("matmul", lambda i: cuop.matmul(x, y), lambda i: np.matmul(a, b)),
    ]
    for name, ours, peer in cases:
        yield Case(f"{name} of 8", "float32", ours, {"numpy": peer}, {"numpy": 0.0}, nbytes=96)


def _products() -> Iterator[Case]:
    import cuop

    for dtype, sizes in [("float32", (512, 1024, 2048)), ("float64", (1024,))]:
        for n in sizes:
            a, b = _random((n, n), dtype, 2)
            x, y = cuop.asarray(a), cuop.asarray(b)
            out = cuop.empty((n, n), dtype)
            same = np.asarray(out)
            yield Case(
                f"matmul {n}",
                dtype,
                lambda i, x=x, y=y, out=out: cuop.matmul(x, y, out=out),
                {"numpy": lambda i, a=a, b=b, c=same: np.matmul(a, b, out=c)},
                {"numpy": 0.95},
                nbytes=3 * a.nbytes,
                flops=2.0 * n**3 * (1 if dtype == "float32" else 2),
                exact=lambda a=a, b=b: a.astype(float) @ b.astype(float),
            )


def _elementwise() -> Iterator[Case]:
    import cuop

    functions = ["add", "multiply", "exp", "log", "sin", "tanh", "sqrt"]
    for dtype in ("float32", "float64"):
        a, b = (np.abs(x) + 0.1 for x in _random(_LARGE, dtype, 2))
        x, y, out = cuop.asarray(a), cuop.asarray(b), cuop.empty(_LARGE, dtype)
        same = np.asarray(out)
        for name in functions:
            ours, peer = getattr(cuop, name), getattr(np, name)
            given, arrays = ((x, y), (a, b)) if name in ("add", "multiply") else ((x,), (a,))
            yield Case(
                f"{name} 2^24",
                dtype,
                lambda i, f=ours, g=given, out=out: f(*g, out=out),
                {"numpy": lambda i, f=peer, g=arrays, c=same: f(*g, out=c)},
                {"numpy": 1.0},
                nbytes=(len(given) + 1) * a.nbytes,
                exact=lambda f=peer, g=arrays: f(*(v.astype(np.float64) for v in g)),
            )


def _chains() -> Iterator[Case]:
    import numexpr

    import cuop

    numexpr.set_num_threads(len(os.sched_getaffinity(0)))
    a, b = _random(_LARGE, "float32", 2)
    x, y = cuop.asarray(a), cuop.asarray(b)

    def chain(x, y):
        return ((x * y + x) * 2.0 - y) * (x - y) * 0.5 + (x * x - y * y) * 0.25

    fused = cuop.fuse(chain)
    text = "((a * b + a) * 2 - b) * (a - b) * 0.5 + (a * a - b * b) * 0.25"
    yield Case(
        "fused chain of 10 ops 2^24",
        "float32",
        lambda i: fused(x, y),
        {
            "numpy": lambda i: chain(a, b),
            "numexpr": lambda i: numexpr.evaluate(
                text, local_dict={"a": a, "b": b}, truediv=False, optimization="moderate"
            ),
        },
        {"numpy": 4.0, "numexpr": 1.0},
        nbytes=3 * a.nbytes,
        exact=lambda: chain(a.astype(float), b.astype(float)),
    )


def _reductions() -> Iterator[Case]:
    import cuop

    for dtype in ("float32", "float64"):
        (a,) = _random((4096, 4096), dtype)
        x = cuop.asarray(a)
        for name, axis in [
            ("sum", None),
            ("sum", 0),
            ("sum", 1),
            ("max", None),
            ("max", 1),
            ("var", 1),
        ]:
            ours, peer = getattr(cuop, name), getattr(np, name)
            yield Case(
                f"{name} 4096x4096 " + ("all" if axis is None else f"axis {axis}"),
                dtype,
                lambda i, f=ours, axis=axis, x=x: f(x, axis=axis),
                {"numpy": lambda i, f=peer, axis=axis, a=a: f(a, axis=axis)},
                {"numpy": 1.0},
                nbytes=a.nbytes,
                exact=lambda f=peer, axis=axis, a=a: f(a.astype(np.float64), axis=axis),
            )


def _softmax(a: np.ndarray) -> np.ndarray:
    e = np.exp(a - a.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _layer_norm(a: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    centred = a - a.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * gamma + beta


def _rows() -> Iterator[Case]:
    import cuop

    (a,) = _random((1000, 10000), "float32")
    x = cuop.asarray(a)
    yield Case(
        "softmax 1000x10000",
        "float32",
        lambda i: cuop.softmax(x),
        {"numpy expression": lambda i: _softmax(a)},
        {"numpy expression": 3.0},
        nbytes=2 * a.nbytes,
        exact=lambda: _softmax(a.astype(float)),
    )
    (r,) = _random((8192, 1024), "float32")
    gamma, beta = _random(1024, "float32", 2)
    s, g, b = (cuop.asarray(v) for v in (r, gamma, beta))
    yield Case(
        "layer_norm 8192x1024",
        "float32",
        lambda i: cuop.layer_norm(s, g, b),
        {"numpy expression": lambda i: _layer_norm(r, gamma, beta)},
        {"numpy expression": 3.0},
        nbytes=2 * r.nbytes,
        exact=lambda: _layer_norm(*(v.astype(float) for v in (r, gamma, beta))),
    )


def _transforms() -> Iterator[Case]:
    import scipy.fft

    import cuop

    workers = len(os.sched_getaffinity(0))
    for name, shape in [
        ("fft", (2048, 2048)),
        ("fft", (1 << 22,)),
        ("fft", (256, 10007)),
        ("rfft", (2048, 2048)),
        ("fft2", (2048, 2048)),
    ]:
        (a,) = _random(shape, "float32")
        a = a if name == "rfft" else (a + 1j * a[..., ::-1]).astype("complex64")
        x = cuop.asarray(a)
        ours, peer = getattr(cuop.fft, name), getattr(scipy.fft, name)
        elements = float(np.prod(shape))
        length = elements if name == "fft2" else shape[-1]
        yield Case(
            f"{name} {'x'.join(map(str, shape))}",
            str(a.dtype),
            lambda i, f=ours, x=x: f(x),
            {"scipy.fft": lambda i, f=peer, a=a: f(a, workers=workers)},
            {"scipy.fft": 1.0},
            nbytes=2 * a.nbytes,
            flops=(2.5 if name == "rfft" else 5.0) * elements * np.log2(length),
            exact=lambda f=peer, a=a: f(
                a.astype("complex128" if a.dtype.kind == "c" else "float64")
            ),
        )
