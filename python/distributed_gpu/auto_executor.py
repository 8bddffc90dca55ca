"""Arrays of the host in, arrays of the host out, any size: all devices of all ranks make the result.

Every rank makes the same call; arrays are given on rank 0 and are None elsewhere, the result comes back
on rank 0, on its host, as the kind of the first array. Memory is looked at when a call begins; the
work is cut into batches that fit, and goes on in smaller ones where memory turns out short. Arrays
may be NumPy's (np.memmap too), PyTorch's, JAX's, CuPy's, cuop tensors, or names of .npy files and of
tensors in .safetensors files (`model.safetensors:name`), which are read page by page; results of those are
NumPy's and cuop tensors. Errors raise MPIError on every rank.
"""

import inspect
import os
from collections.abc import Iterable

from cuop import dist, executor
from cuop._arguments import Switch, integer, switch
from cuop.array_files import array_file
from cuop.errors import ExecutionError
from distributed_gpu import _tiled
from distributed_gpu._arrays import kind_of, plain, to_kind
from distributed_gpu._call import check_manager, mpi_errors, told
from distributed_gpu._progress import Progress
from distributed_gpu.algorithms.stencil import DEFAULT_LAPLACIAN_5PT
from distributed_gpu.mpi_manager import MPIManager
from distributed_gpu.pipeline_optimizer import PipelineOptimizer
from distributed_gpu.resource_planner import ResourcePlanner, gib_text

__all__ = ["AutoExecutor", "auto_compute"]


class AutoExecutor:
    """The documented operations on arrays that may be larger than the devices' memory.

    mpi: an MPIManager; None takes the ranks of everybody who was started together.
    verbose: prints the plan and the progress of each call on rank 0.
    max_per_gpu_gb: GiB of each device at most, beside what is free of it.

    Every method takes return_on_cpu=True; with False the result is a cuop.dist.DistTensor, in parts on
    the ranks' devices, on every rank.
    """

    verbose = Switch()

    def __init__(self, mpi=None, verbose=True, max_per_gpu_gb=None):
        self.mpi = MPIManager() if mpi is None else mpi
        check_manager(self.mpi, "AutoExecutor")
        self.verbose = verbose
        self.planner = ResourcePlanner(self.mpi, max_per_gpu_gb)
        self.last_report = None
        """What the last call did: cuop.executor.TiledReport; None of grids that were swept whole."""

    @property
    def is_master(self):
        """Whether this is rank 0, which holds arrays and results."""
        return self.mpi.is_master_process()

    def gpu_status(self):
        """Prints the memory of every device on rank 0; returns [GPUStatus] on all ranks."""
        return self.planner.print_gpu_status()

    def plan_info(self, op, *shapes, dtype="float32", **options):
        """The ExecutionPlan for an operation by name and the shapes of its arrays; printed on rank 0.

        It is what the method of that name follows, of several passes where that takes them. Of
        "einsum" the first of `shapes` is the equation; options are the operation's.
        """
        with told(self.mpi, "plan_info"):
            planned = _tiled.planned(op, shapes, **options)
        self.planner.invalidate_mem_cache()
        plan = self.planner.plan(op, planned, dtype)
        if self.is_master:
            print(_plan_text(plan, self.planner.worker()))
        return plan

    # Products.

    def matmul(self, A, B, *, return_on_cpu=True):
        """A [M, K] @ B [K, N]."""
        return self._run("matmul", [A, B], return_on_cpu)

    def batch_matmul(self, A, B, *, return_on_cpu=True):
        """A [..., M, K] @ B [..., K, N] or [K, N]."""
        return self._run("batch_matmul", [A, B], return_on_cpu)

    def matmul_mixed_precision(self, A, B, comm_dtype="float16", *, return_on_cpu=True):
        """A @ B of matrices that reach the GPUs in 16 bits, scaled by powers of two: half the bytes.

        The arithmetic is that of the matrices' dtype. On ranks without GPUs nothing is rounded.
        """
        return self._run(
            "matmul_mixed_precision", [A, B], return_on_cpu, options={"comm_dtype": comm_dtype}
        )

    def matmul_sparse_aware(self, A, B, sparsity_threshold=None, *, return_on_cpu=True):
        """A @ B of matrices that reach the GPUs without their zeros: tiles of which the part
        `sparsity_threshold` is zero, None: where that is predicted to be faster."""
        options = {"sparsity_threshold": sparsity_threshold}
        return self._run("matmul_sparse_aware", [A, B], return_on_cpu, options=options)

    def pipelined_matmul(self, A, B, num_chunks=None, *, return_on_cpu=True):
        """A @ B in at least `num_chunks` batches a device; None: as many as the plan says."""
        chunks = 1
        if num_chunks is not None:
            with told(self.mpi, "pipelined_matmul"):
                chunks = integer(num_chunks, "pipelined_matmul", "num_chunks", least=1)
        return self._run("pipelined_matmul", [A, B], return_on_cpu, least_tiles=chunks)

    def matmul_batch(self, pairs, *, return_on_cpu=True):
        """[A @ B for A, B in pairs], of a list on rank 0; None elsewhere."""
        with told(self.mpi, "matmul_batch"):
            switch(return_on_cpu, "matmul_batch", "return_on_cpu")
            if self.is_master:
                pairs = [tuple(pair) for pair in pairs]
                if any(len(pair) != 2 for pair in pairs):
                    raise ExecutionError("matmul_batch: pairs: needed are pairs of two matrices")
        count = self.mpi.broadcast(len(pairs) if self.is_master else None)
        mine = pairs if self.is_master else [(None, None)] * count
        results = [self.matmul(A, B, return_on_cpu=return_on_cpu) for A, B in mine]
        return results if self.is_master or not return_on_cpu else None

    def einsum(self, equation, *operands, optimize="auto", return_on_cpu=True):
        """What the equation says of the operands; see distributed_einsum."""
        return self._run(
            "einsum", operands, return_on_cpu, (equation,), options={"optimize": optimize}
        )

    def einsum_with_path(self, equation, *operands, path=None, optimize="auto", return_on_cpu=True):
        """The same along a path of get_optimal_path or opt_einsum."""
        optimize = optimize if path is None else path
        return self.einsum(equation, *operands, optimize=optimize, return_on_cpu=return_on_cpu)

    def tensordot(self, a, b, dims=2, *, return_on_cpu=True):
        """Sum over the last `dims` dimensions of a and the first of b, or over pairs of lists."""
        return self._run("tensordot", [a, b], return_on_cpu, options={"dims": dims})

    # Elements.

    def transpose(self, tensor, dim0=0, dim1=1, *, return_on_cpu=True):
        """Two dimensions exchanged."""
        return self._run("transpose", [tensor], return_on_cpu, options={"dim0": dim0, "dim1": dim1})

    def add(self, A, B, *, return_on_cpu=True):
        """A + B with broadcasting."""
        return self._run("add", [A, B], return_on_cpu)

    def sum(self, tensor, dim=None, keepdim=False, *, mode="plain", return_on_cpu=True):
        """Sum over `dim` (None: all, (): each element alone); mode "exact" is rounded once, whatever
        the batches."""
        return self._reduce("sum", tensor, dim, keepdim, mode, return_on_cpu)

    def mean(self, tensor, dim=None, keepdim=False, *, mode="plain", return_on_cpu=True):
        """Arithmetic mean."""
        return self._reduce("mean", tensor, dim, keepdim, mode, return_on_cpu)

    def max(self, tensor, dim=None, keepdim=False, *, return_on_cpu=True):
        """Largest element."""
        return self._reduce("max", tensor, dim, keepdim, "plain", return_on_cpu)

    def min(self, tensor, dim=None, keepdim=False, *, return_on_cpu=True):
        """Smallest element."""
        return self._reduce("min", tensor, dim, keepdim, "plain", return_on_cpu)

    def sum_kahan(self, tensor, dim=None, keepdim=False, *, return_on_cpu=True):
        """Compensated sum: an error of one rounding whatever the number of elements."""
        return self._reduce("sum_kahan", tensor, dim, keepdim, "plain", return_on_cpu)

    def mean_kahan(self, tensor, dim=None, keepdim=False, *, return_on_cpu=True):
        """Compensated mean."""
        return self._reduce("mean_kahan", tensor, dim, keepdim, "plain", return_on_cpu)

    def _reduce(self, name, tensor, dim, keepdim, mode, return_on_cpu):
        options = {"dim": dim, "keepdim": keepdim, "mode": mode}
        return self._run(name, [tensor], return_on_cpu, options=options)

    # Convolutions and transforms.

    def conv2d(
        self, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1,
        *, return_on_cpu=True,
    ):  # fmt: skip
        """Convolution of [N, C, H, W] by [O, C / groups, h, w]."""
        options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        return self._run("conv2d", [input, weight, bias], return_on_cpu, options=options)

    def conv3d(
        self, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1,
        *, return_on_cpu=True,
    ):  # fmt: skip
        """Convolution of [N, C, D, H, W] by [O, C / groups, d, h, w]."""
        options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        return self._run("conv3d", [input, weight, bias], return_on_cpu, options=options)

    def fft(self, tensor, n=None, dim=-1, norm="backward", *, return_on_cpu=True):
        """1-D transforms along `dim`; one line may be larger than a device's memory."""
        return self._lines("fft", tensor, n, dim, norm, return_on_cpu)

    def ifft(self, tensor, n=None, dim=-1, norm="backward", *, return_on_cpu=True):
        """Inverse of fft."""
        return self._lines("ifft", tensor, n, dim, norm, return_on_cpu)

    def rfft(self, tensor, n=None, dim=-1, norm="backward", *, return_on_cpu=True):
        """Of real input: the n/2 + 1 outputs that are not conjugates of others.

        One line may be larger than a device's memory; half the bytes of fft's move then.
        """
        return self._lines("rfft", tensor, n, dim, norm, return_on_cpu)

    def irfft(self, tensor, n=None, dim=-1, norm="backward", *, return_on_cpu=True):
        """Inverse of rfft: `n` real numbers, 2 (m - 1) of m inputs where it is not given.

        One line may be larger than a device's memory; half the bytes of ifft's move then.
        """
        return self._lines("irfft", tensor, n, dim, norm, return_on_cpu)

    def _lines(self, kind, tensor, n, dim, norm, return_on_cpu):
        def lines(comm, x, **settings):
            return executor.fft_line(comm, x, n, dim, norm, kind, **settings)

        return self._whole(kind, lines, [tensor], return_on_cpu)

    def fft2d(self, tensor, s=None, dim=(-2, -1), norm="backward", *, return_on_cpu=True):
        """2-D transforms: of one grid as fft2d_pencil, or of a batch over two of its dimensions."""
        is_grid = self._ndim(tensor, "fft2d") == 2 and s is None
        with told(self.mpi, "fft2d"):
            dims = tuple(dim) if isinstance(dim, Iterable) else ()
            is_grid = is_grid and dims in ((-2, -1), (-1, -2), (0, 1), (1, 0))
        if is_grid:
            return self.fft2d_pencil(tensor, norm, return_on_cpu=return_on_cpu)
        options = {"s": s, "dim": dim, "norm": norm}
        return self._run("fft2d", [tensor], return_on_cpu, options=options)

    def fft2d_pencil(self, tensor, norm="backward", *, return_on_cpu=True):
        """The 2-D transform of one grid, which may be larger than a device's memory."""

        def grid(comm, x, **settings):
            return executor.fft2d_grid(comm, x, norm, **settings)

        return self._whole("fft2d_pencil", grid, [tensor], return_on_cpu)

    # Grids.

    def stencil_2d(
        self, grid, stencil_kernel=None, boundary="zero", iterations=1, *, return_on_cpu=True
    ):
        """The kernel (the 5-point Laplacian without one) applied `iterations` times."""

        def sweep(comm, x, kernel, **settings):
            return executor.stencil_2d(comm, x, kernel, boundary, iterations, **settings)

        kernel = DEFAULT_LAPLACIAN_5PT if stencil_kernel is None else stencil_kernel
        return self._whole("stencil_2d", sweep, [grid, kernel], return_on_cpu)

    def jacobi_2d(
        self, grid, rhs, dx=1.0, boundary="zero", iterations=1000, tol=1e-6,
        *, return_info=False, return_on_cpu=True,
    ):  # fmt: skip
        """Jacobi's method for Laplace(u) = rhs; see distributed_jacobi_2d."""
        with told(self.mpi, "jacobi_2d"):
            switch(return_info, "jacobi_2d", "return_info")
        found = []

        def solve(comm, u, f, **settings):
            result, info, report = executor.jacobi_2d(
                comm, u, f, dx, boundary, iterations, tol, return_info, **settings
            )
            found.append(info)
            return result, report

        result = self._whole("jacobi_2d", solve, [grid, rhs], return_on_cpu)
        return (result, found[0]) if return_info else result

    def pipelined_allreduce(self, tensor, num_chunks=None):
        """The sum of all ranks' arrays, on every rank: chunk by chunk."""
        return PipelineOptimizer(self.mpi).pipelined_allreduce(tensor, num_chunks)

    # What they share.

    def _ndim(self, tensor, call):
        """Dimensions of rank 0's array, on every rank."""
        ndim = None
        with told(self.mpi, call):
            if self.is_master:
                if tensor is None:
                    raise ExecutionError(f"{call}: tensor was not given on rank 0")
                ndim = len(_opened(tensor).shape)
        return self.mpi.broadcast(ndim)

    def _run(self, op, arrays, return_on_cpu, positional=(), options=None, least_tiles=1):
        with told(self.mpi, op):
            operation, _ = _tiled.operation_of(op, positional, **(options or {}))

        def tiles(comm, *inputs, **settings):
            return executor.run(comm, operation, inputs, least_tiles=least_tiles, **settings)

        return self._whole(op, tiles, arrays, return_on_cpu)

    def _whole(self, op, function, arrays, return_on_cpu):
        """function(comm, *arrays, **settings) -> (result, report) of rank 0's arrays; the result as
        the caller wants it."""
        inputs = [None] * len(arrays)
        with told(self.mpi, op):
            switch(return_on_cpu, op, "return_on_cpu")
            limits = self.planner.limits()
            if self.is_master:
                opened = [None if array is None else _opened(array) for array in arrays]
                kind = kind_of(opened[0])
                inputs = [None if array is None else plain(array) for array in opened]
        with mpi_errors(self.mpi.comm):
            with Progress(op, self.verbose and self.is_master) as progress:
                result, report = function(
                    self.mpi.comm, *inputs, **limits,
                    on_progress=progress.update if progress.is_shown else None,
                )  # fmt: skip
                self.last_report = report if report.passes else None
                if report.passes:
                    progress.done(report)
            if not return_on_cpu:
                return _in_parts(self.mpi.comm, result)
        if result is None:
            return None
        return to_kind(result, kind)


def auto_compute(op, *arrays, mpi=None, verbose=False, max_per_gpu_gb=None, **options):
    """An operation of AutoExecutor by name: auto_compute("matmul", A, B)."""
    mpi = MPIManager() if mpi is None else mpi
    check_manager(mpi, "auto_compute")
    with told(mpi, "auto_compute"):
        if op not in _tiled.NAMES and op not in ("matmul_batch", "pipelined_allreduce"):
            raise ExecutionError(
                f"auto_compute: {op!r} is no operation; there are {', '.join(sorted(_tiled.NAMES))}"
            )
        method = getattr(AutoExecutor(mpi, verbose, max_per_gpu_gb), op)
        inspect.signature(method).bind(*arrays, **options)
    return method(*arrays, **options)


def _opened(array):
    """The array, of a name what its file holds, read page by page."""
    return array_file(array).open() if isinstance(array, (str, os.PathLike)) else array


def _in_parts(comm, result):
    """Rank 0's array in blocks of its first dimension on the ranks' devices."""
    whole = dist.DistTensor.from_root(comm, result)
    if len(whole.shape) == 0:
        return whole
    return whole.redistribute(dist.Sharding(dist.Mesh.line(comm.size), dist.P("r")))


def _plan_text(plan, worker):
    lines = [
        "[AutoExecutor] ━━━ plan ━━━",
        f"  operation: {plan.operation}",
        f"  strategy: {plan.description}",
        f"  data: {gib_text(plan.total_data_memory_gb)}",
        f"  usable {'GPU' if worker == 'GPU' else 'host'} memory: {gib_text(plan.total_available_gb)} "
        f"(least of a {worker} {gib_text(plan.min_gpu_available_gb)})",
        f"  predicted: {plan.predicted_time_ms:.3g} ms (floor {plan.floor_ms:.3g} ms)",
    ]
    return "\n".join(lines)
