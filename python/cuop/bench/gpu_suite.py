"""The GPU cases: PyTorch and CuPy beside cuOP on the same buffers, precision pinned."""

from collections.abc import Callable, Iterator
from typing import Any

from cuop.bench.gpu_measure import GpuCase
from cuop.bench.measure import Roofs

_L2 = 120 << 20  # bytes that no L2 cache of today holds twice


def pin_precision() -> None:
    """float32 is float32 everywhere, in PyTorch's products and convolutions too."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True  # it may choose its algorithm, as cuOP may


def measure_roofs() -> dict[str, Roofs]:
    """By precision: the bandwidth of a large copy and the rate of a product, the best of several."""
    import time

    import torch

    def best(run: Callable[[], Any]) -> float:
        times = []
        for _ in range(7):
            torch.cuda.synchronize()
            start = time.perf_counter()
            run()
            torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
        return min(times)

    source = torch.ones(1 << 29, device="cuda")
    target = torch.empty_like(source)
    bandwidth = 2 * source.nbytes / best(lambda: target.copy_(source))
    rates = {}
    for dtype in ("float32", "bfloat16"):
        a = torch.randn(8192, 8192, device="cuda", dtype=getattr(torch, dtype))
        rates[dtype] = 2 * 8192.0**3 / best(lambda a=a: a @ a)
    return {name: Roofs(bandwidth, rate) for name, rate in rates.items()}


def cases() -> Iterator[GpuCase]:
    """All cases, made one after the other so that only one holds its buffers."""
    yield from _elementwise()
    yield from _reductions()
    yield from _rows()
    yield from _images()
    yield from _grids()
    yield from _transforms()
    yield from _products()
    yield from _convolutions()
    yield from _allocations()


class _Buffers:
    """The same random numbers for every library: torch's memory, seen by each without a copy."""

    def __init__(self, *shapes: tuple[int, ...], dtype: str = "float32", sets: int = 0) -> None:
        import cupy
        import torch

        import cuop

        torch.manual_seed(1)
        kind = getattr(torch, dtype)
        size = sum(torch.Size(shape).numel() for shape in shapes) * kind.itemsize
        self.sets = sets or max(1, -(-_L2 // size))
        self.torch = [
            [torch.randn(shape, dtype=kind, device="cuda") for shape in shapes]
            for _ in range(self.sets)
        ]
        self.cuop = [[cuop.from_dlpack(t) for t in arrays] for arrays in self.torch]
        self.cupy = (
            [[cupy.from_dlpack(t) for t in arrays] for arrays in self.torch]
            if dtype != "bfloat16"
            else []
        )
        self.bytes = size

    def double(self) -> list[Any]:
        """The first set in double precision."""
        return [t.to(_wide(t.dtype)) for t in self.torch[0]]


def _wide(dtype: Any) -> Any:
    import torch

    return torch.complex128 if dtype.is_complex else torch.float64


def _case(
    name: str,
    buffers: _Buffers,
    ours: Callable[..., Any],
    theirs: Callable[..., Any],
    goals: dict[str, float],
    *,
    nbytes: int,
    flops: float = 0.0,
    precision: str = "float32",
    cupy: Callable[..., Any] | None = None,
) -> GpuCase:
    """`goals` are those of torch by kind; CuPy, where given, is to be reached call by call."""
    peers = {"torch": lambda i: theirs(*buffers.torch[i])}
    wanted = {("torch", kind): goal for kind, goal in goals.items()}
    if cupy is not None:
        peers["cupy"] = lambda i: cupy(*buffers.cupy[i])
        wanted["cupy", "E"] = 1.0
    return GpuCase(
        name,
        precision,
        lambda i: ours(*buffers.cuop[i]),
        peers,
        wanted,
        sets=buffers.sets,
        nbytes=nbytes,
        flops=flops,
        exact=lambda: theirs(*buffers.double()),
    )


def _elementwise() -> Iterator[GpuCase]:
    import cupy
    import torch

    import cuop

    n = 1 << 20
    buffers = _Buffers((n,), (n,))
    yield _case(
        "add 1M", buffers, cuop.add, torch.add, {"G": 1.0, "E": 1.5, "S": 1.7}, nbytes=12 * n,
        cupy=cupy.add,
    )  # fmt: skip

    def chain(x, y, relu):
        return relu((x * y + x) * 2.0 - y)

    fused = cuop.fuse(lambda x, y: chain(x, y, cuop.relu))
    yield _case(
        "relu((x*y+x)*2-y) 1M", buffers, fused, lambda x, y: chain(x, y, torch.relu),
        {"G": 4.0, "E": 7.0}, nbytes=12 * n,
    )  # fmt: skip
    large = _Buffers((1 << 28,), (1 << 28,))
    yield _case("add 256M", large, cuop.add, torch.add, {"G": 1.0}, nbytes=12 << 28)


def _reductions() -> Iterator[GpuCase]:
    import cupy
    import torch

    import cuop

    small = _Buffers((1 << 20,))
    yield _case(
        "sum 1M", small, cuop.sum, torch.sum, {"G": 2.5, "E": 1.0}, nbytes=4 << 20, cupy=cupy.sum
    )
    n = 10000
    large = _Buffers((n, n))
    for axis in (None, 0, 1):
        name = f"sum {n}x{n} " + ("all" if axis is None else f"axis {axis}")
        yield _case(
            name, large, lambda x, a=axis: cuop.sum(x, axis=a), lambda x, a=axis: torch.sum(x, a),
            {"G": 1.0}, nbytes=4 * n * n,
        )  # fmt: skip
    doubles = _Buffers((n, n // 2), dtype="float64")
    for buffers, dtype, columns in ((large, "float32", n), (doubles, "float64", n // 2)):
        for axis in (None, 0, 1):
            name = f"var {n}x{columns} " + ("all" if axis is None else f"axis {axis}")
            yield _case(
                name, buffers, lambda x, a=axis: cuop.var(x, axis=a),
                lambda x, a=axis: torch.var(x, a, correction=0), {"G": 1.0}, nbytes=4 * n * n,
                precision=dtype,
            )  # fmt: skip


def _rows() -> Iterator[GpuCase]:
    import torch

    import cuop

    for rows, goal in ((1, 1.4), (1000, 1.5), (10000, 1.35)):
        buffers = _Buffers((rows, 10000), sets=32 if rows == 1 else 0)
        yield _case(
            f"softmax {rows}x10000", buffers, cuop.softmax, lambda x: torch.softmax(x, -1),
            {"G": goal}, nbytes=8 * rows * 10000,
        )  # fmt: skip
    m, n = 8192, 4096
    buffers = _Buffers((m, n), (n,), (n,))
    yield _case(
        f"layer_norm {m}x{n}", buffers, cuop.layer_norm,
        lambda x, g, b: torch.nn.functional.layer_norm(x, (n,), g, b), {"G": 1.35}, nbytes=8 * m * n,
    )  # fmt: skip


def _images() -> Iterator[GpuCase]:
    import torch
    from torch.nn import functional

    import cuop

    shape, size = (32, 64, 224, 224), 32 * 64 * 224 * 224
    buffers = _Buffers(shape, (64,), (64,), (64,), (64,))
    for arrays in buffers.torch:
        arrays[4].abs_().add_(0.5)  # a variance
    yield _case(
        "batch_norm inference 32x64x224x224", buffers,
        lambda x, g, b, m, v: cuop.batch_norm(x, g, b, m, v),
        lambda x, g, b, m, v: functional.batch_norm(x, m, v, g, b), {"G": 1.3}, nbytes=8 * size,
    )  # fmt: skip
    images = _Buffers(shape)
    yield _case("relu 32x64x224x224", images, cuop.relu, torch.relu, {"G": 1.0}, nbytes=8 * size)
    yield _case(
        "max_pool2d 2x2 32x64x224x224", images, lambda x: cuop.max_pool2d(x, 2),
        lambda x: functional.max_pool2d(x, 2), {"G": 2.0}, nbytes=5 * size,
    )  # fmt: skip


def _grids() -> Iterator[GpuCase]:
    import torch
    from torch.nn import functional

    import cuop

    n = 8192
    buffers = _Buffers((n, n))
    weights = {
        kind: torch.tensor(
            [[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]], device="cuda", dtype=kind
        )[None, None]
        for kind in (torch.float32, torch.float64)
    }
    yield _case(
        f"5-point stencil {n}x{n}", buffers, cuop.stencil2d,
        lambda x: functional.conv2d(x[None, None], weights[x.dtype], padding=1)[0, 0],
        {"G": 4.0}, nbytes=8 * n * n,
    )  # fmt: skip
    yield _case(
        f"transpose {n}x{n}", buffers, lambda x: x.T.clone(), lambda x: x.t().contiguous(),
        {"G": 3.0}, nbytes=8 * n * n,
    )  # fmt: skip


def _transforms() -> Iterator[GpuCase]:
    import torch

    import cuop

    n = 4096
    waves, reals = _Buffers((n, n), dtype="complex64"), _Buffers((n, n))
    for name, buffers, nbytes in (
        ("fft", waves, 16 * n * n),
        ("rfft", reals, 8 * n * n),
        ("fft2", waves, 32 * n * n),
    ):
        yield _case(
            f"{name} {n}x{n}", buffers, getattr(cuop.fft, name), getattr(torch.fft, name),
            {"G": 1.0}, nbytes=nbytes, precision="complex64" if buffers is waves else "float32",
        )  # fmt: skip


def _products() -> Iterator[GpuCase]:
    import torch

    import cuop

    goals = {512: 1.5, 1024: 1.8, 2048: 2.0, 4096: 2.0, 8192: 2.0}
    for dtype, sizes in (("float32", goals), ("bfloat16", dict.fromkeys((1024, 4096, 8192), 1.0))):
        for n, goal in sizes.items():
            buffers = _Buffers((n, n), (n, n), dtype=dtype)
            yield _case(
                f"matmul {n}", buffers, cuop.matmul, torch.matmul, {"G": goal},
                nbytes=buffers.bytes * 3 // 2, flops=2.0 * n**3, precision=dtype,
            )  # fmt: skip


def _convolutions() -> Iterator[GpuCase]:
    from torch.nn import functional

    import cuop

    buffers = _Buffers((32, 64, 224, 224), (128, 64, 3, 3))
    yield _case(
        "conv2d 32x64x224x224 3x3 to 128", buffers, lambda x, w: cuop.conv2d(x, w, padding=1),
        lambda x, w: functional.conv2d(x, w, padding=1), {"G": 1.0}, nbytes=buffers.bytes * 3,
        flops=2.0 * 32 * 128 * 64 * 9 * 224 * 224,
    )  # fmt: skip


def _allocations() -> Iterator[GpuCase]:
    import torch

    import cuop

    for name, n in (("1 KiB", 256), ("1 MiB", 1 << 18)):
        yield GpuCase(
            f"allocate and free {name}", "-", lambda i, n=n: cuop.empty(n, device="cuda"),
            {"torch": lambda i, n=n: torch.empty(n, device="cuda")}, {("torch", "E"): 3.0},
        )  # fmt: skip
