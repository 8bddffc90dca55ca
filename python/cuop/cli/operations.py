"""What `cuop run` can do: each operation in steps, so that a bar can show how far it is."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cuop.errors import ShapeError

Progress = Callable[[float], None]
#: The kernel of "stencil" when none is given: the 5-point Laplacian.
LAPLACIAN = np.array([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]])
_SWEEPS_A_STEP = 25
_BYTES_A_STEP = 64 << 20


@dataclass(frozen=True)
class Options:
    """The options of `cuop run`, each meaning what its --help says."""

    axis: int | None
    dim0: int
    dim1: int
    norm: str
    mode: str
    stride: int
    padding: int
    boundary: str
    iterations: int
    dx: float
    tol: float


@dataclass(frozen=True)
class Job:
    """A running operation: its ranks, arrays (None on other ranks than 0), options and bar."""

    comm: object
    arrays: list
    options: Options
    progress: Progress

    def call(self, function: Callable, *arrays, **options):
        """A function of cuop.dist from rank 0 to rank 0."""
        return function(self.comm, *arrays, **options)

    def by_rows(self, work: Callable):
        """work(rows) on slices of the first array, put together again on rank 0."""
        first = self.arrays[0]
        steps = self.comm.broadcast(_row_steps(first) if self.comm.rank == 0 else None)
        parts = []
        for done, (begin, end) in enumerate(steps):
            rows = first
            if self.comm.rank == 0 and len(steps) > 1:
                rows = first[begin:end]
            parts.append(work(rows))
            self.progress((done + 1) / len(steps))
        if self.comm.rank != 0 or len(parts) == 1:
            return parts[0]
        return np.concatenate([np.asarray(part) for part in parts])

    def by_sweeps(self, work: Callable, grid):
        """work(grid, sweeps) -> (grid, go on?) until all sweeps are done or none is needed."""
        total = self.options.iterations
        done, goes_on = 0, True
        while goes_on:
            sweeps = min(_SWEEPS_A_STEP, total - done)
            grid, goes_on = work(grid, sweeps)
            done += sweeps
            goes_on = goes_on and done < total
            self.progress(done / max(total, 1))
        return grid


@dataclass(frozen=True)
class Operation:
    """How many files an operation takes, and run(job) -> array on rank 0."""

    fewest_inputs: int
    most_inputs: int
    run: Callable[[Job], object]


def _row_steps(array: np.ndarray) -> list[tuple[int, int]]:
    """Slices of the first axis of at most _BYTES_A_STEP each; one slice for what has no rows."""
    rows = array.shape[0] if array.ndim else 1
    row_bytes = max(1, array.nbytes // max(rows, 1))
    height = max(1, _BYTES_A_STEP // row_bytes)
    return [(begin, min(begin + height, rows)) for begin in range(0, max(rows, 1), height)]


def _matmul(job: Job):
    from cuop import dist

    a, b = job.arrays
    if job.comm.broadcast(a.ndim if job.comm.rank == 0 else None) != 2:
        return job.call(dist.matmul_from_root, a, b)  # it words the error
    return job.by_rows(lambda rows: job.call(dist.matmul_from_root, rows, b))


def _transpose(job: Job):
    from cuop import dist

    dims = {"dim0": job.options.dim0, "dim1": job.options.dim1}
    return job.call(dist.transpose_from_root, *job.arrays, **dims)


def _transform(name: str) -> Operation:
    def run(job: Job):
        from cuop import dist

        axis = -1 if job.options.axis is None else job.options.axis
        function = getattr(dist, f"{name}_from_root")
        return job.call(function, *job.arrays, dim=axis, norm=job.options.norm)

    return Operation(1, 1, run)


def _fft2d(job: Job):
    from cuop import dist

    shape = job.comm.broadcast(tuple(job.arrays[0].shape) if job.comm.rank == 0 else None)
    if len(shape) != 2:
        raise ShapeError(f"fft2d: a grid of 2 dimensions is needed, given {shape}")
    return job.call(dist.fft2d_pencil_from_root, *job.arrays, norm=job.options.norm)


def _sum(job: Job):
    from cuop import dist

    return job.call(dist.sum_from_root, *job.arrays, dim=job.options.axis, mode=job.options.mode)


def _mean(job: Job):
    from cuop import dist

    return job.call(dist.mean_from_root, *job.arrays, dim=job.options.axis, mode=job.options.mode)


def _conv2d(job: Job):
    from cuop import dist

    images, weight = job.arrays
    options = {"stride": (job.options.stride,) * 2, "padding": (job.options.padding,) * 2}
    return job.by_rows(lambda rows: job.call(dist.conv_from_root, rows, weight, **options))


def _stencil(job: Job):
    from cuop import dist

    grid, *given = job.arrays
    kernel = given[0] if given else LAPLACIAN

    def work(grid, sweeps):
        options = {"boundary": job.options.boundary, "iterations": sweeps}
        return job.call(dist.stencil_2d_from_root, grid, kernel, **options), True

    return job.by_sweeps(work, grid)


def _jacobi(job: Job):
    from cuop import dist

    grid, rhs = job.arrays
    chosen = job.options

    def work(grid, sweeps):
        options = {"dx": chosen.dx, "boundary": chosen.boundary, "tol": chosen.tol}
        grid, info = job.call(dist.jacobi_2d_from_root, grid, rhs, iterations=sweeps, **options)
        return grid, info.update_norm >= chosen.tol

    return job.by_sweeps(work, grid)


OPERATIONS = {
    "matmul": Operation(2, 2, _matmul),
    **{name: _transform(name) for name in ("fft", "ifft", "rfft", "irfft")},
    "fft2d": Operation(1, 1, _fft2d),
    "sum": Operation(1, 1, _sum),
    "mean": Operation(1, 1, _mean),
    "conv2d": Operation(2, 2, _conv2d),
    "stencil": Operation(1, 2, _stencil),
    "jacobi": Operation(2, 2, _jacobi),
    "transpose": Operation(1, 1, _transpose),
}
