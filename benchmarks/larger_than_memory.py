"""Arrays of the host through one or more GPUs in tiles, beside their floors and beside cublasXt.

    python benchmarks/larger_than_memory.py --table table.md              # all cases, sizes for 128 GiB
    python benchmarks/larger_than_memory.py --cases matmul --scale 4      # a quarter of each dimension
    python benchmarks/larger_than_memory.py --cases matmul --peer page-locked  # cublasXt there alone
    python benchmarks/larger_than_memory.py --cases files --folder /tmp   # operands of 40 GB, 8 GB of host

Arrays are float32 (complex64 of transforms), pageable first and then the same memory page-locked. Floors: the
bytes of inputs and result over page-locked links that are measured in the same run, and the arithmetic at the
rate of PyTorch's IEEE float32 product of 8192 x 8192. cublasXt has the block size that it has by default. Times
are of one call after a small one, which loads what is needed; the better of two where a call takes less
than ten seconds. Errors are those of some elements against float64.
"""

import argparse
import ctypes
import glob
import os
import site
import threading
import time
from pathlib import Path

import numpy as np
import torch

import cuop
from cuop import dist, executor

GIB = 1 << 30
MEMORIES = ("pageable", "page-locked")


def fill(array, seed):
    """Random numbers in an array of the host, made on the GPU."""
    torch.manual_seed(seed)
    flat = array.reshape(-1).view(np.float32)
    target = torch.from_numpy(flat)
    for begin in range(0, flat.size, 1 << 28):
        part = target[begin : begin + (1 << 28)]
        part.copy_(torch.randn(part.numel(), device="cuda"))
    torch.cuda.empty_cache()


def random_array(shape, seed, dtype=np.float32):
    array = np.empty(shape, dtype)
    fill(array, seed)
    return array


class Locked:
    """Arrays whose memory is page-locked inside of the scope."""

    def __init__(self, *arrays):
        self.arrays = arrays

    def __enter__(self):
        for array in self.arrays:
            status = torch.cuda.cudart().cudaHostRegister(array.ctypes.data, array.nbytes, 0)
            assert int(status) == 0, status

    def __exit__(self, *unused):
        for array in self.arrays:
            torch.cuda.cudart().cudaHostUnregister(array.ctypes.data)


def seconds_of(call):
    """(seconds, result): of one call, or of the better of two short ones."""
    best, result = None, None
    for _ in range(2):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        result = call()
        torch.cuda.synchronize()
        taken = time.perf_counter() - begin
        best = taken if best is None else min(best, taken)
        if taken > 10:
            break
    return best, result


class Link:
    """Between page-locked memory of the host and one GPU."""

    BYTES = 1 << 30

    def __init__(self, gpu):
        self.gpu = gpu
        self.ways = {}
        for way in ("up", "down"):
            host = torch.empty(self.BYTES, dtype=torch.uint8, pin_memory=True)
            there = torch.empty(self.BYTES, dtype=torch.uint8, device=f"cuda:{gpu}")
            pair = (there, host) if way == "up" else (host, there)
            self.ways[way] = (torch.cuda.Stream(gpu), *pair)

    def copy(self, *ways):
        for stream, to, source in map(self.ways.get, ways):
            with torch.cuda.stream(stream):
                to.copy_(source, non_blocking=True)


def link_rates(gpus):
    """Bytes a second of copies of all GPUs that run at a time: up, down, both ways together."""
    links = [Link(gpu) for gpu in range(gpus)]

    def rate(*ways):
        def copy():
            for _ in range(4):
                for link in links:
                    link.copy(*ways)
            for link in links:
                torch.cuda.synchronize(link.gpu)

        return gpus * 4 * len(ways) * Link.BYTES / seconds_of(copy)[0]

    return rate("up"), rate("down"), rate("up", "down")


class Roofs:
    """What the machine can do at most, measured here: all GPUs at a time, as they share the host's memory."""

    def __init__(self, gpus):
        self.gpus = gpus
        self.up, self.down, self.both = link_rates(gpus)
        torch.backends.cuda.matmul.allow_tf32 = False  # IEEE products
        a, b = (torch.randn(8192, 8192, device="cuda") for _ in range(2))
        seconds, _ = seconds_of(lambda: torch.mm(a, b))
        self.flops = gpus * 2 * 8192**3 / seconds

    def __str__(self):
        return (
            f"roofs of {self.gpus} GPU(s): up {self.up / 1e9:.1f} GB/s, down {self.down / 1e9:.1f} "
            f"GB/s, both together {self.both / 1e9:.1f} GB/s, float32 {self.flops / 1e12:.1f} TFLOP/s"
        )

    def floor(self, inputs, result, flops):
        """Seconds: the slowest of the link, each way and both together, and of the arithmetic."""
        sent = sum(x.nbytes for x in inputs)
        return max(
            sent / self.up,
            result.nbytes / self.down,
            (sent + result.nbytes) / self.both,
            flops / self.flops,
        )


class CublasXt:
    """The peer: products of matrices of the host."""

    def __init__(self, gpus):
        paths = [
            p for s in site.getsitepackages() for p in glob.glob(f"{s}/nvidia/*/lib/libcublas.so.*")
        ]
        self.library = ctypes.CDLL(paths[0] if paths else "libcublas.so")
        self.handle = ctypes.c_void_p()
        self._check(self.library.cublasXtCreate(ctypes.byref(self.handle)))
        devices = (ctypes.c_int * gpus)(*range(gpus))
        self._check(self.library.cublasXtDeviceSelect(self.handle, gpus, devices))

    @staticmethod
    def _check(status):
        assert status == 0, f"cublasXt says {status}"

    def product(self, a, b, out):
        """out = a @ b, row-major: out' = b' @ a' as cublasXt sees it."""
        m, k = a.shape
        n = b.shape[1]
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        size, pointer = ctypes.c_size_t, ctypes.c_void_p
        self._check(
            self.library.cublasXtSgemm(
                self.handle, 0, 0, size(n), size(m), size(k), ctypes.byref(one),
                pointer(b.ctypes.data), size(n), pointer(a.ctypes.data), size(k),
                ctypes.byref(zero), pointer(out.ctypes.data), size(n),
            )
        )  # fmt: skip

    def close(self):
        self._check(self.library.cublasXtDestroy(self.handle))


def product_error(a, b, out):
    """The largest error of 64 elements over the root of the length of their sums."""
    generator = np.random.default_rng(1)
    rows, columns = (generator.integers(0, size, 8) for size in out.shape)
    exact = a[rows].astype(np.float64) @ b[:, columns].astype(np.float64)
    return np.abs(out[np.ix_(rows, columns)] - exact).max() / np.sqrt(a.shape[1])


class Resident:
    """The most memory that the process holds inside of the scope, the pages of mapped files apart."""

    KINDS = ("RssAnon", "RssShmem", "RssFile")

    def __enter__(self):
        self.before = self.now()
        self.most = dict(self.before)
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.look)
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.stop.set()
        self.thread.join()

    def now(self):
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        fields = dict(line.split(":", 1) for line in lines)
        return {kind: int(fields[kind].split()[0]) << 10 for kind in self.KINDS}

    def look(self):
        while not self.stop.wait(0.01):
            for kind, value in self.now().items():
                self.most[kind] = max(self.most[kind], value)

    def __str__(self):
        def text(kind):
            return f"{self.most[kind] / GIB:.2f} GiB ({self.before[kind] / GIB:.2f} before)"

        return (
            f"resident at most: of its own {text('RssAnon')}, shared {text('RssShmem')}, "
            f"pages of mapped files {text('RssFile')}"
        )


class Bench:
    """Runs cases and keeps the lines of the table."""

    def __init__(self, roofs, memories, peer_memories):
        self.roofs = roofs
        self.memories = memories
        self.peer_memories = peer_memories
        self.comm = dist.world()
        self.lines = [
            "| case | memory | cuOP, s | predicted | floor | of the floor | peer, s | peer / cuOP | peak | error |",
            "|---|---|---|---|---|---|---|---|---|---|",
        ]

    def ours(self, operation, inputs, out=None, **limits):
        """(seconds, report, result)"""
        target = None if out is None else cuop.from_dlpack(out)
        call = lambda: executor.run(self.comm, operation, inputs, out=target, **limits)  # noqa: E731
        seconds, (result, report) = seconds_of(call)
        return seconds, report, result

    def tell(self, case, memory, seconds, report, floor, peer=None, error=None):
        values = [
            case, memory, f"{seconds:.3f}", f"{report.plan.seconds:.3f}", f"{floor:.3f}",
            f"{floor / seconds:.2f}", "" if peer is None else f"{peer:.3f}",
            "" if peer is None else f"{peer / seconds:.2f}", f"{report.peak / GIB:.2f} GiB",
            "" if error is None else f"{error:.1e}",
        ]  # fmt: skip
        self.lines.append("| " + " | ".join(values) + " |")
        print(self.lines[-1], flush=True)
        print(f"    {report.plan}", flush=True)

    def both(self, case, operation, inputs, out, flops, error, peer=None, **limits):
        """Pageable, then page-locked."""
        floor = self.roofs.floor(inputs, out, flops)
        for memory in self.memories:
            with Locked(*(inputs + [out] if memory == "page-locked" else [])):
                seconds, report, _ = self.ours(operation, inputs, out, **limits)
                wrong = error(out)
                theirs = None
                if peer is not None and memory in self.peer_memories:
                    out[...] = 0
                    theirs, _ = seconds_of(lambda: peer(out))
                    assert error(out) < 1e-4
                self.tell(case, memory, seconds, report, floor, theirs, wrong)

    def matmul(self, sizes, with_peer, **limits):
        m, k, n = sizes
        a, b = random_array((m, k), 1), random_array((k, n), 2)
        out = np.zeros((m, n), np.float32)
        xt = CublasXt(self.roofs.gpus) if with_peer else None
        text = f"matmul {m} x {k} x {n}" + "".join(
            f", {key} {v / GIB:g} GiB" for key, v in limits.items()
        )
        self.both(
            text, executor.matmul(), [a, b], out, 2 * m * k * n, lambda c: product_error(a, b, c),
            xt and (lambda c: xt.product(a, b, c)), **limits,
        )  # fmt: skip
        if xt:
            xt.close()

    def fft(self, rows, length):
        x = random_array((rows, length), 3, np.complex64)
        out = np.zeros_like(x)
        picked = np.random.default_rng(2).integers(0, rows, 8)
        exact = np.fft.fft(x[picked].astype(np.complex128))

        def error(y):
            return np.linalg.norm(y[picked] - exact) / np.linalg.norm(exact)

        flops = 5 * x.size * np.log2(length)
        self.both(f"fft of {rows} lines of {length}", executor.fft(), [x], out, flops, error)

    def sum(self, rows, length):
        x = random_array((rows, length), 4)
        out = np.zeros((), np.float32)
        exact = sum(float(part.astype(np.float64).sum()) for part in np.array_split(x, 256))

        def error(y):
            return abs(float(y) - exact) / np.sqrt(x.size)

        self.both(f"sum of {rows} x {length}", executor.sum(), [x], out, x.size, error)

    def conv(self, batch):
        x = random_array((batch, 64, 112, 112), 5)
        weight = random_array((64, 64, 3, 3), 6)
        out = np.zeros((batch, 64, 112, 112), np.float32)
        exact = torch.nn.functional.conv2d(
            torch.from_numpy(x[-1:]).double(), torch.from_numpy(weight).double(), padding=1
        ).numpy()

        def error(y):
            return np.abs(y[-1:] - exact).max() / 24  # the root of 9 x 64

        flops = 2 * out.size * 64 * 9
        case = f"conv2d {batch} x 64 x 112 x 112, 3 x 3"
        self.both(case, executor.conv(1, 1, 1, 1), [x, weight], out, flops, error)

    def files(self, folder, scale):
        """Operands of 40 GB in files, 2 GB of the GPU; the pages of files are not the process's."""
        m, k, n = 240_000 // scale, 40_000 // scale, 10_000 // scale
        paths = [folder / name for name in ("a.npy", "b.npy", "c.npy")]
        opened = np.lib.format.open_memmap
        for path, shape, seed in ((paths[0], (m, k), 7), (paths[1], (k, n), 8)):
            array = opened(path, "w+", np.float32, shape)
            for begin in range(0, shape[0], 4096):
                fill(array[begin : begin + 4096], seed + begin)
            array.flush()
            del array
        a, b = (opened(path, "r") for path in paths[:2])
        out = opened(paths[2], "w+", np.float32, (m, n))
        with Resident() as resident:
            seconds, report, _ = self.ours(executor.matmul(), [a, b], out, memory_limit=2 * GIB)
        floor = self.roofs.floor([a, b], out, 2 * m * k * n)
        case = f"matmul {m} x {k} x {n}, memory_limit 2 GiB, .npy files"
        self.tell(case, "files", seconds, report, floor, None, product_error(a, b, out))
        print(f"    {resident}", flush=True)
        del a, b, out
        for path in paths:
            path.unlink()


def main():
    """Measure the cases."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    names = ["matmul", "medium", "fft", "sum", "conv", "files"]
    parser.add_argument("--cases", nargs="+", choices=names, default=names[:-1])
    parser.add_argument("--scale", type=int, default=1, help="dimensions are divided by it")
    parser.add_argument("--folder", type=Path, default=Path(os.environ.get("TMPDIR", "/tmp")))
    parser.add_argument("--memories", nargs="+", choices=MEMORIES, default=MEMORIES)
    parser.add_argument(
        "--peer",
        nargs="*",
        choices=MEMORIES,
        default=MEMORIES,
        help="memory cublasXt is measured in",
    )
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    roofs = Roofs(torch.cuda.device_count())
    bench = Bench(roofs, options.memories, options.peer)
    s = options.scale
    small = random_array((4096, 4096), 9)
    executor.run(bench.comm, executor.matmul(), [small, small])
    print(roofs, *bench.lines, sep="\n", flush=True)
    if "medium" in options.cases:
        bench.matmul((32768 // s, 16384 // s, 16384 // s), True)
        bench.matmul((32768 // s, 16384 // s, 16384 // s), False, memory_limit=2 * GIB)
    if "fft" in options.cases:
        bench.fft(262144 // s, 4096)
    if "sum" in options.cases:
        bench.sum(65536 // s, 65536 // s)
    if "conv" in options.cases:
        bench.conv(2048 // s)
    if "files" in options.cases:
        bench.files(options.folder, s)
    if "matmul" in options.cases:
        bench.matmul((65536 // s,) * 3, True)
    if options.table:
        options.table.write_text("\n".join([str(roofs), "", *bench.lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
