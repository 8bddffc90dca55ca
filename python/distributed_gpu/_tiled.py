"""The operations of AutoExecutor by name, as cuop.executor takes them."""

import functools

from cuop import executor
from cuop.errors import ExecutionError
from distributed_gpu._arrays import narrow_wire, sparse_wire

_SUMS = {"sum_kahan": ("sum", "compensated"), "mean_kahan": ("mean", "compensated")}


def reduction(name, dim=None, keepdim=False, mode="plain"):
    """The TileOperation of "sum", "mean", "max", "min", "sum_kahan" or "mean_kahan"."""
    name, mode = _SUMS.get(name, (name, mode))
    return getattr(executor, name)(dim, keepdim, mode)


def convolution(dimensions, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Of images (2 dimensions) or volumes (3); the bias is an input, not an argument."""
    del bias
    each = ((v,) * dimensions if isinstance(v, int) else v for v in (stride, padding, dilation))
    return executor.conv(*each, groups)


def mixed_precision(comm_dtype="float16"):
    """Matrices that reach GPUs in 16 bits."""
    return executor.matmul(narrow_wire(comm_dtype, "matmul_mixed_precision"))


def sparse_aware(sparsity_threshold=None):
    """Matrices that reach GPUs without their zeros."""
    return executor.matmul(sparse_wire(sparsity_threshold, "matmul_sparse_aware"))


def pipelined_matmul(num_chunks=None):
    """A matrix product: all of them are made in overlapping tiles."""
    del num_chunks
    return executor.matmul()


_BY_NAME = {
    "matmul": executor.matmul,
    "matmul_mixed_precision": mixed_precision,
    "matmul_sparse_aware": sparse_aware,
    "pipelined_matmul": pipelined_matmul,
    "batch_matmul": executor.batch_matmul,
    "transpose": executor.transpose,
    "add": executor.add,
    "conv2d": functools.partial(convolution, 2),
    "conv3d": functools.partial(convolution, 3),
    "fft2d": executor.fft2d,
    "tensordot": executor.tensordot,
    **{
        name: functools.partial(reduction, name)
        for name in ("sum", "mean", "max", "min", "sum_kahan", "mean_kahan")
    },
}


def lines(kind, n=None, dim=-1, norm="backward"):
    """A planner(shapes, dtype, machine) of fft, ifft, rfft or irfft."""

    def plan(shapes, dtype, machine):
        (shape,) = _counted(kind, shapes, 1)
        return executor.plan_fft_line(shape, dtype, n, dim, norm, kind, machine=machine)

    return plan


def grids(op, s=None, dim=(-2, -1), norm="backward"):
    """A planner of fft2d and fft2d_pencil."""

    def plan(shapes, dtype, machine):
        (shape,) = _counted(op, shapes, 1)
        if s is None and len(shape) == 2:
            return executor.plan_fft2d_grid(shape, dtype, machine)
        return executor.plan_call(executor.fft2d(s, dim, norm), [shape], [dtype], machine)

    return plan


def sweeps(boundary="zero", iterations=1):
    """A planner of stencil_2d; without the shape of a kernel, of the 5-point Laplacian."""

    def plan(shapes, dtype, machine):
        both = [*shapes, (3, 3)] if len(shapes) == 1 else _counted("stencil_2d", shapes, 2)
        return executor.plan_stencil_2d(both, [dtype] * 2, boundary, iterations, machine)

    return plan


def jacobi_sweeps(dx=1.0, boundary="zero", iterations=1000, tol=1e-6):
    """A planner of jacobi_2d."""
    del tol

    def plan(shapes, dtype, machine):
        both = _counted("jacobi_2d", shapes, 2)
        return executor.plan_jacobi_2d(both, [dtype] * 2, dx, boundary, iterations, machine)

    return plan


def tiles(operation, shapes):
    """A planner of an operation in tiles, of these shapes."""

    def plan(_, dtype, machine):
        return executor.plan_call(operation, shapes, [dtype] * len(shapes), machine)

    return plan


_PLANNERS = {
    **{kind: functools.partial(lines, kind) for kind in ("fft", "ifft", "rfft", "irfft")},
    **{op: functools.partial(grids, op) for op in ("fft2d", "fft2d_pencil")},
    "stencil_2d": sweeps,
    "jacobi_2d": jacobi_sweeps,
}


NAMES = tuple(dict.fromkeys(("einsum", "einsum_with_path", *_BY_NAME, *_PLANNERS)))


def planned(op, arguments, **options):
    """(planner, shapes) of an operation by name: planner(shapes, dtype, machine) makes the
    cuop.executor.CallPlan that the method of that name follows."""
    if op in _PLANNERS:
        return _PLANNERS[op](**options), list(arguments)
    operation, shapes = operation_of(op, arguments, **options)
    return tiles(operation, shapes), shapes


def _counted(op, shapes, count):
    if len(shapes) != count:
        raise ExecutionError(f"{op}: {len(shapes)} shapes were given, needed are {count}")
    return shapes


def operation_of(op, arguments, **options):
    """(TileOperation, shapes) of an operation by name; of einsum the first argument is the equation."""
    if op not in NAMES:
        raise ExecutionError(f"{op!r} is no operation; there are {', '.join(sorted(NAMES))}")
    if op.startswith("einsum"):
        if not arguments or not isinstance(arguments[0], str):
            raise ExecutionError(f"{op}: the first argument must be the equation")
        return executor.einsum(arguments[0], **options), list(arguments[1:])
    return _BY_NAME[op](**options), list(arguments)
