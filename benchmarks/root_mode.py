"""Rooted calls over sizes beside PyTorch on one GPU and beside plain NCCL scatter-compute-gather.

    python benchmarks/root_mode.py --table table.md --json raw.json
    python benchmarks/root_mode.py --cases matmul add --sizes 1 64 1024

Operands and results are on rank 0's GPU. "cuOP" is the call of a process without ranks, which takes as many
GPUs as pay; "one GPU" is PyTorch's; "NCCL" is what one writes by hand with torch.distributed, a process a GPU:
blocks of rows scattered (what all need broadcast), computed by PyTorch, gathered. Sizes are those of all
operands together. Milliseconds of a call and its wait, the median of several after two first ones; "loss" is
cuOP's time over the better peer's. Products and convolutions are in IEEE float32.
"""

import argparse
import functools
import importlib
import json
import math
import os
import statistics
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as nccl
import torch.multiprocessing

MIB = 1 << 20
SWEEPS = 10
LAPLACIAN = [[0.0, 0.1, 0.0], [0.1, -0.4, 0.1], [0.0, 0.1, 0.0]]


def seconds_of(*calls):
    """Of each (call, wait) the median of calls and their waits, fewer of long ones. They take turns: what
    a GPU reaches changes by some per cent with what it has just done.
    """
    times = [[] for _ in calls]
    for turn in range(17):
        for (call, wait), taken in zip(calls, times, strict=True):
            wait()
            begin = time.perf_counter()
            call()
            wait()
            taken.append(time.perf_counter() - begin)
        if turn >= 4 and sum(times[0][2:]) > 0.25:
            break
    return [statistics.median(taken[2:]) for taken in times]


def reals(x):
    """NCCL moves no complex numbers."""
    return torch.view_as_real(x) if x.is_complex() else x


class Peers:
    """What the functions of a case need of NCCL: blocks of rows of rank 0's tensors."""

    def __init__(self, rank, ranks):
        self.rank, self.ranks = rank, ranks

    def scatter(self, x, shape, dtype):
        rows = shape[0] // self.ranks
        part = torch.empty((rows, *shape[1:]), dtype=dtype, device="cuda")
        nccl.scatter(reals(part), list(reals(x).split(rows)) if self.rank == 0 else None, 0)
        return part

    def broadcast(self, x, shape, dtype):
        whole = x if self.rank == 0 else torch.empty(shape, dtype=dtype, device="cuda")
        nccl.broadcast(whole, 0)
        return whole

    def gather(self, part):
        """The parts as rows of one tensor on rank 0."""
        whole = None
        if self.rank == 0:
            rows = part.shape[0] * self.ranks
            whole = torch.empty((rows, *part.shape[1:]), dtype=part.dtype, device="cuda")
        into = list(reals(whole).split(part.shape[0])) if whole is not None else None
        nccl.gather(reals(part), into, 0)
        return whole

    def halos(self, grid):
        """Rows 0 and -1 of a padded grid from the neighbours; those at the border stay zero."""
        calls = []
        for other, mine, theirs in ((self.rank - 1, 1, 0), (self.rank + 1, -2, -1)):
            if 0 <= other < self.ranks:
                calls.append(nccl.P2POp(nccl.isend, grid[mine], other))
                calls.append(nccl.P2POp(nccl.irecv, grid[theirs], other))
        for waited in nccl.batch_isend_irecv(calls):
            waited.wait()


def sweep(grid):
    weight = torch.tensor(LAPLACIAN, device="cuda")[None, None]
    return torch.nn.functional.conv2d(grid[None, None], weight, padding=1)[0, 0]


def side(size, matrices=1, item=4):
    """Of so many square matrices of `size` bytes in all: a multiple of 64."""
    return max(64, round(math.sqrt(size / matrices / item) / 64) * 64)


class Case:
    """An operation at a size: shapes of operands, and the three ways to compute it. Of this class those
    whose operands are all split by rows, as their result is.
    """

    dtype = torch.float32
    function = ""  #: of distributed_gpu.algorithms
    arguments: dict = {}

    def operands(self):
        generator = torch.Generator(device="cuda").manual_seed(1)
        return [
            torch.randn(s, generator=generator, device="cuda", dtype=self.dtype)
            for s in self.shapes
        ]

    def scattered(self, peers, operands):
        """This process's rows of each."""
        pairs = zip(operands, self.shapes, strict=True)
        return [peers.scatter(x, shape, self.dtype) for x, shape in pairs]

    def by_hand(self, peers, *operands):
        return peers.gather(self.one(*self.scattered(peers, operands)))

    def ours(self, operands, *managers):
        """Our call of them, which takes no arguments."""
        module, name = self.function.split(".")
        function = getattr(importlib.import_module(f"distributed_gpu.algorithms.{module}"), name)
        return functools.partial(function, *operands, *managers, **self.arguments)


class Shared(Case):
    """All need the second operand whole."""

    def by_hand(self, peers, x, shared):
        part = peers.scatter(x, self.shapes[0], self.dtype)
        return peers.gather(self.one(part, peers.broadcast(shared, self.shapes[1], self.dtype)))


class Matmul(Shared):
    name = "matmul"
    function = "matrix_ops.distributed_matmul"

    def __init__(self, size):
        n = side(size, 2)
        self.shapes = [(n, n), (n, n)]

    def one(self, a, b):
        return a @ b


class BatchMatmul(Case):
    name = "batch_matmul of 64"
    function = "matrix_ops.distributed_batch_matmul"

    def __init__(self, size):
        n = side(size, 128)
        self.shapes = [(64, n, n), (64, n, n)]

    def one(self, a, b):
        return torch.bmm(a, b)


class Add(Case):
    name = "add"
    function = "matrix_ops.distributed_add"

    def __init__(self, size):
        n = side(size, 2)
        self.shapes = [(n, n), (n, n)]

    def one(self, a, b):
        return a + b


class Sum(Case):
    name = "sum"
    function = "reduction.distributed_sum"

    def __init__(self, size):
        n = side(size)
        self.shapes = [(n, n)]

    def one(self, x):
        return x.sum(**self.arguments)

    def by_hand(self, peers, x):
        total = self.one(*self.scattered(peers, [x]))
        nccl.reduce(total, 0)
        return total


class ColumnSums(Sum):
    name = "sum of dim 0"
    arguments = {"dim": 0}


class Fft(Case):
    name = "fft of lines of 4096"
    function = "fft.distributed_fft"
    dtype = torch.complex64

    def __init__(self, size):
        self.shapes = [(max(2, size // 8 // 4096), 4096)]

    def one(self, x):
        return torch.fft.fft(x)


class Fft2d(Case):
    name = "fft2d_pencil"
    function = "fft.distributed_fft2d_pencil"
    dtype = torch.complex64

    def __init__(self, size):
        n = side(size, item=8)
        self.shapes = [(n, n)]

    def one(self, x):
        return torch.fft.fft2(x)

    def by_hand(self, peers, x):
        rows = torch.fft.fft(*self.scattered(peers, [x]))
        width = rows.shape[1] // peers.ranks
        sent = [reals(part.contiguous()) for part in rows.split(width, 1)]
        columns = torch.empty((rows.shape[0] * peers.ranks, width), dtype=rows.dtype, device="cuda")
        nccl.all_to_all(list(reals(columns).split(rows.shape[0])), sent)
        whole = peers.gather(torch.fft.fft(columns, dim=0).T.contiguous())
        return None if whole is None else whole.T


class Stencil(Case):
    name = f"stencil_2d, {SWEEPS} sweeps"
    function = "stencil.distributed_stencil_2d"
    arguments = {"stencil_kernel": np.array(LAPLACIAN, np.float32), "iterations": SWEEPS}

    def __init__(self, size):
        n = side(size)
        self.shapes = [(n, n)]

    def one(self, x):
        for _ in range(SWEEPS):
            x = sweep(x)
        return x

    def by_hand(self, peers, x):
        grid = torch.nn.functional.pad(*self.scattered(peers, [x]), (0, 0, 1, 1))
        for _ in range(SWEEPS):
            peers.halos(grid)
            grid = torch.nn.functional.pad(sweep(grid)[1:-1], (0, 0, 1, 1))
        return peers.gather(grid[1:-1].contiguous())


class Conv(Shared):
    name = "conv2d of 3 x 3"
    function = "convolution.distributed_conv2d"
    arguments = {"padding": 1}

    def __init__(self, size):
        count = max(8, size // 4 // (64 * 28 * 28) // 8 * 8)
        self.shapes = [(count, 64, 28, 28), (64, 64, 3, 3)]

    def one(self, x, weight):
        return torch.nn.functional.conv2d(x, weight, **self.arguments)


KINDS = [Matmul, BatchMatmul, Add, Sum, ColumnSums, Fft, Fft2d, Stencil, Conv]


def cases(options):
    """(kind, size, case) of all that is wanted."""
    for kind in KINDS:
        if options.cases and not kind.name.startswith(tuple(options.cases)):
            continue
        for size in options.sizes:
            # 2 GiB of matrices are a second of arithmetic; more would show nothing else.
            if kind is not Matmul or size <= 2048:
                yield kind, size, kind(size * MIB)


def key(kind, size):
    return f"{kind.name}|{size}"


def precise():
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def peer_process(rank, ranks, options, path):
    """One of the processes of NCCL; rank 0 writes seconds and errors."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    torch.cuda.set_device(rank)
    precise()
    nccl.init_process_group(
        "nccl", rank=rank, world_size=ranks, device_id=torch.device("cuda", rank)
    )
    peers, found = Peers(rank, ranks), {}

    def wait():
        torch.cuda.synchronize()

    for kind, size, case in cases(options):
        operands = case.operands() if rank == 0 else [None] * len(case.shapes)
        times = []
        error = 0.0
        for turn in range(9):
            nccl.barrier()
            wait()
            begin = time.perf_counter()
            result = case.by_hand(peers, *operands)
            wait()
            if turn > 1:
                times.append(time.perf_counter() - begin)
            if turn == 0 and rank == 0:
                exact = case.one(*operands)
                error = float((result - exact).abs().max() / exact.abs().max())
                del exact
            del result
        found[key(kind, size)] = {"nccl": statistics.median(times), "nccl_error": error}
        del operands
        torch.cuda.empty_cache()
        nccl.barrier()
    if rank == 0:
        Path(path).write_text(json.dumps(found), encoding="utf-8")
    nccl.destroy_process_group()


def ours(options):
    """Seconds, strategy and error of cuOP's calls, and seconds of one GPU."""
    import cuop
    from cuop import dist
    from distributed_gpu import MPIManager, TensorDistributor

    cuop.set_current_device("cuda:0")
    precise()
    dist.run_ranks(dist.calibrate, torch.cuda.device_count())  # kept, as by a first long call
    mpi = MPIManager(dist.world())
    distributor = TensorDistributor(mpi)
    found = {}
    for kind, size, case in cases(options):
        theirs = case.operands()
        mine = [cuop.asarray(x) for x in theirs]
        call = case.ours(mine, mpi, distributor)
        result = torch.from_dlpack(call())
        exact = case.one(*theirs)
        error = float((result - exact).abs().max() / exact.abs().max())
        del result, exact
        torch.cuda.empty_cache()
        one = functools.partial(case.one, *theirs)
        seconds, of_one = seconds_of((call, cuop.synchronize), (one, torch.cuda.synchronize))
        plan = dist.last_report().plan
        found[key(kind, size)] = {
            "ours": seconds,
            "one": of_one,
            "strategy": plan.strategy,
            "ranks": plan.ranks,
            "predicted": plan.seconds,
            "error": error,
        }
        del theirs, mine, call, one
        torch.cuda.empty_cache()
    return found


def line(kind, size, case, figures):
    shapes = ", ".join("x".join(map(str, shape)) for shape in case.shapes)
    peer = min(figures["one"], figures["nccl"])
    return (
        f"| {kind.name} | {shapes} | {size} MiB | {figures['one'] * 1e3:.3g} | "
        f"{figures['nccl'] * 1e3:.3g} | {figures['ours'] * 1e3:.3g} ({figures['strategy']}) | "
        f"{figures['ours'] / peer:.2f} | {figures['predicted'] * 1e3:.3g} | {figures['error']:.0e} |"
    )


def main():
    """Measure NCCL in processes of its own, then one GPU and our calls here, by turns."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", nargs="+", help="beginnings of names")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[1, 16, 256, 2048, 8192], help="MiB"
    )
    parser.add_argument("--table", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    gpus = torch.cuda.device_count()
    path = f"/tmp/root-mode-{os.getpid()}.json"
    torch.multiprocessing.start_processes(
        peer_process, (gpus, options, path), nprocs=gpus, start_method="spawn"
    )
    figures = json.loads(Path(path).read_text(encoding="utf-8"))
    Path(path).unlink()
    for name, mine in ours(options).items():
        figures[name].update(mine)
    lines = [
        f"- command: python benchmarks/root_mode.py --sizes {' '.join(map(str, options.sizes))}",
        f"- date: {time.strftime('%Y-%m-%d')}",
        f"- GPUs: {gpus} x {torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}, "
        f"NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}",
        "",
        "| operation | operands | bytes | one GPU | NCCL | cuOP (strategy) | loss | predicted | error |",
        "|---|---|---|---|---|---|---|---|---|",
        *(line(kind, size, case, figures[key(kind, size)]) for kind, size, case in cases(options)),
    ]
    print("\n".join(lines))
    if options.table:
        options.table.write_text(
            "# Rooted calls over sizes\n\n" + "\n".join(lines) + "\n", encoding="utf-8"
        )
    if options.json:
        options.json.write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
