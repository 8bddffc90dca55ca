"""Distributed functions on GPU ranks beside one GPU, PyTorch on one GPU, and their bounds.

    python benchmarks/gpu_ranks.py                # all GPUs of the machine
    python benchmarks/gpu_ranks.py --gpus 1 2 --cases matmul transpose --table table.md
    mpirun -np 2 python benchmarks/gpu_ranks.py   # ranks that are processes, operands over them

Ranks are threads of this process, rank r on GPU r. Rooted: operands and result on rank 0's GPU. Sharded:
operands lie over the ranks already, the result stays there. Plain: the rooted call of a process without
ranks, which takes as many GPUs as pay. Times are of the slowest rank, the median of several calls after a
first one.
"""

import argparse
import statistics
import time
from pathlib import Path

import torch

import cuop
from cuop import dist

ROUNDS = 7


def timed(call, wait, barrier):
    """Median milliseconds of a call on this rank, all ranks starting together."""
    times = []
    for _ in range(ROUNDS + 1):
        wait()
        barrier()
        begin = time.perf_counter()
        call()
        wait()
        barrier()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times[1:])


def rows(comm):
    return dist.Sharding(dist.Mesh.line(comm.size), dist.P("r", None))


def noise(shape, dtype, seed):
    """PyTorch's tensor on the first GPU."""
    generator = torch.Generator(device="cuda:0").manual_seed(seed)
    return torch.randn(shape, generator=generator, device="cuda:0").to(getattr(torch, dtype))


def whole(comm, shape, dtype, seed):
    """On rank 0's GPU; None elsewhere."""
    return cuop.asarray(noise(shape, dtype, seed)) if comm.rank == 0 else None


def sharded(comm, shape, dtype, seed, layout):
    x = dist.DistTensor.from_root(comm, whole(comm, shape, dtype, seed))
    return x.redistribute(layout(comm))


def columns(comm):
    return dist.Sharding(dist.Mesh.line(comm.size), dist.P(None, "r"))


def five_points(x, iterations, **call):
    """The Laplacian of five points, scaled so that many sweeps stay finite."""
    weights = cuop.asarray([[0, 0.1, 0], [0.1, -0.4, 0.1], [0, 0.1, 0]])
    everywhere = dist.Sharding.replicated(x.sharding.mesh)
    kernel = dist.DistTensor(x.comm, everywhere, (3, 3), "float32", weights.to(x.local.device))
    return dist.stencil_2d(x, kernel, iterations=iterations, **call)


class Case:
    """A function of operands: on DistTensors or from the root, and PyTorch's."""

    def __init__(self, name, shapes, dtype, run, rooted, torch_run, layout=rows):
        self.name, self.shapes, self.dtype = name, shapes, dtype
        self.run, self.rooted, self.torch_run = run, rooted, torch_run
        self.layout = layout

    def __str__(self):
        sizes = ", ".join("x".join(map(str, shape)) for shape in self.shapes)
        return f"{self.name} {sizes} {self.dtype}"


def cases():
    from distributed_gpu import MPIManager, TensorDistributor
    from distributed_gpu.algorithms import convolution, fft, matrix_ops, reduction, stencil

    def from_root(function, **options):
        def call(comm, *operands):
            mpi = MPIManager(comm)
            return function(*operands, mpi, TensorDistributor(mpi), **options)

        return call

    big = 1 << 14
    matmul = from_root(matrix_ops.distributed_matmul)
    grid, wide, image = (8192, 8192), [(4096, 1 << 16)], [(64, 64, 224, 224), (128, 64, 3, 3)]
    pencil = from_root(fft.distributed_fft2d_pencil)
    return [
        *(
            Case("matmul", [(n, n)] * 2, dtype, lambda a, b: a @ b, matmul, torch.matmul)
            for n, dtype in (
                (4096, "float32"),
                (8192, "float32"),
                (big, "float32"),
                (big, "bfloat16"),
            )
        ),
        Case("batch_matmul", [(64, 1024, 1024)] * 2, "float32", dist.batch_matmul,
             from_root(matrix_ops.distributed_batch_matmul), torch.bmm),
        Case("add", [(big, big)] * 2, "float32", lambda a, b: a + b,
             from_root(matrix_ops.distributed_add), torch.add),
        Case("redistribute rows to columns", [(big, big)], "float32",
             lambda x: x.redistribute(columns(x.comm)), None, None),
        Case("transpose", [(big, big)], "float32", None,
             from_root(matrix_ops.distributed_transpose), None),
        Case("sum of all", [(big, big)], "float32", dist.sum,
             from_root(reduction.distributed_sum), torch.sum),
        Case("sum_kahan of all", [(big, big)], "float32", lambda x: dist.sum(x, mode="compensated"),
             from_root(reduction.distributed_sum_kahan), torch.sum),
        Case("sum of all, exact", [(big, big)], "float32", lambda x: dist.sum(x, mode="exact"),
             from_root(reduction.distributed_sum, mode="exact"), torch.sum),
        Case("fft", wide, "complex64", dist.fft, from_root(fft.distributed_fft), torch.fft.fft),
        Case("rfft", wide, "float32", dist.rfft, from_root(fft.distributed_rfft), torch.fft.rfft),
        *(
            Case("fft2d_pencil", [(n, n)], "complex64", dist.fft2d_pencil, pencil, torch.fft.fft2)
            for n in (8192, big, 2 * big)
        ),
        Case("stencil_2d, 50 sweeps", [grid], "float32", lambda x: five_points(x, 50),
             from_root(stencil.distributed_stencil_2d, iterations=50), None),
        Case("stencil_2d, 50 sweeps", [(20480, 20480)], "float32", lambda x: five_points(x, 50),
             None, None),
        Case("stencil_2d in columns, 50 sweeps", [(20480, 20480)], "float32",
             lambda x: five_points(x, 50, strategy="column"), None, None, columns),
        Case("jacobi_2d, 200 sweeps", [(4096, 4096)] * 2, "float32",
             lambda u, rhs: dist.jacobi_2d(u, rhs, iterations=200),
             from_root(stencil.distributed_jacobi_2d, iterations=200), None),
        Case("conv2d 3x3", image, "float32", None,
             from_root(convolution.distributed_conv2d, padding=(1, 1)),
             lambda x, w: torch.nn.functional.conv2d(x, w, padding=1)),
    ]  # fmt: skip


def sharded_time(case, comm):
    """Milliseconds of this rank's part of a call on operands that lie over the ranks."""
    parts = [sharded(comm, s, case.dtype, i, case.layout) for i, s in enumerate(case.shapes)]
    return timed(lambda: case.run(*parts), cuop.synchronize, comm.barrier)


def measure(case, gpus):
    """{"rooted": ms, "sharded": ms} on this many GPUs."""

    def work(comm):
        wait = cuop.synchronize
        found = {}
        if case.rooted is not None:
            operands = [whole(comm, s, case.dtype, i) for i, s in enumerate(case.shapes)]
            found["rooted"] = timed(lambda: case.rooted(comm, *operands), wait, comm.barrier)
            if comm.rank == 0:
                found["strategy"] = way()
        if case.run is not None:
            found["sharded"] = sharded_time(case, comm)
        return found

    results = dist.run_ranks(work, gpus)
    merged = dict(results[0])
    for kind in ("rooted", "sharded"):
        if kind in merged:
            merged[kind] = max(result[kind] for result in results)
    return merged


def plain(case):
    """(ms, strategy) of the rooted call of this process, which has no ranks."""
    if case.rooted is None:
        return None, None
    comm = dist.world()
    operands = [whole(comm, shape, case.dtype, i) for i, shape in enumerate(case.shapes)]
    taken = timed(lambda: case.rooted(comm, *operands), cuop.synchronize, lambda: None)
    return taken, way()


def peer(case):
    if case.torch_run is None:
        return None
    operands = [noise(shape, case.dtype, i) for i, shape in enumerate(case.shapes)]
    return timed(lambda: case.torch_run(*operands), torch.cuda.synchronize, lambda: None)


def between_processes(comm, wanted):
    """A line a case, of the slowest process."""
    cuop.set_current_device(f"cuda:{comm.rank % torch.cuda.device_count()}")
    for case in wanted:
        if case.run is None:
            continue
        mine = cuop.asarray([sharded_time(case, comm)])
        slowest = dist.all_reduce(comm, mine, "max").item()
        if comm.rank == 0:
            print(f"| {case} | {figure(slowest)} ({way()}) |", flush=True)
    if comm.rank == 0:
        print(comm.exchange_ways or "no exchange was made")


def way():
    """How the last call went: its strategy, and in how many chunks."""
    plan = dist.last_report().plan
    chunks = plan.settings.get("chunks", 1)
    return plan.strategy + (f", {chunks} chunks" if chunks > 1 else "")


def figure(value):
    return "" if value is None else f"{value:.3g}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--gpus", type=int, nargs="+")
    arguments.add_argument("--cases", nargs="+", help="beginnings of names")
    arguments.add_argument("--table", type=Path)
    given = arguments.parse_args()
    wanted = [c for c in cases() if not given.cases or c.name.startswith(tuple(given.cases))]
    if dist.world().size > 1:
        return between_processes(dist.world(), wanted)
    count = torch.cuda.device_count()
    counts = given.gpus or sorted({1, count})
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # IEEE, as ours
    cuop.set_current_device("cuda:0")
    lines = [
        "| case | PyTorch, 1 GPU | plain (strategy) | "
        + " | ".join(f"rooted, {n} (strategy) | sharded, {n}" for n in counts)
        + " |",
        "|---|---|---|" + "---|---|" * len(counts),
    ]
    for case in wanted:
        taken, strategy = plain(case)
        cells = [str(case), figure(peer(case)), figure(taken) and f"{figure(taken)} ({strategy})"]
        for n in counts:
            found = measure(case, n)
            rooted = figure(found.get("rooted"))
            cells += [
                rooted and f"{rooted} ({found['strategy']})",
                figure(found.get("sharded")),
            ]
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
        torch.cuda.empty_cache()
    text = "\n".join(lines)
    print(text)
    if given.table:
        given.table.write_text(
            f"# Distributed functions on GPU ranks\n\n"
            f"- command: python benchmarks/gpu_ranks.py --gpus {' '.join(map(str, counts))}\n"
            f"- date: {time.strftime('%Y-%m-%d')}\n- GPUs: {count} x {torch.cuda.get_device_name(0)}, "
            f"PyTorch {torch.__version__}\n\nMilliseconds of a call and its wait.\n\n{text}\n"
        )


if __name__ == "__main__":
    main()
