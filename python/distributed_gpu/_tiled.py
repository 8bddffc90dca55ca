"""The operations of AutoExecutor by name, as cuop.executor takes them."""

import functools

from cuop import dist, executor
from cuop.errors import ExecutionError
from distributed_gpu._arrays import dtype_name

_SUMS = {"sum_kahan": ("sum", "compensated"), "mean_kahan": ("mean", "compensated")}


def reduction(name, dim=None, keepdim=False, mode="plain"):
    """The TileOperation of "sum", "mean", "max", "min", "sum_kahan" or "mean_kahan"."""
    name, mode = _SUMS.get(name, (name, mode))
    return getattr(executor, name)(dim, keepdim, mode)


def convolution(bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Of images or volumes; the bias is an input, not an argument."""
    del bias
    return executor.conv(stride, padding, dilation, groups)


def mixed_precision(comm_dtype="float16"):
    """Matrices that reach GPUs in 16 bits."""
    return executor.matmul(dist.Wire.narrow(dtype_name(comm_dtype)))


def sparse_aware(sparsity_threshold=None):
    """Matrices that reach GPUs without their zeros."""
    return executor.matmul(dist.Wire.sparse(sparsity_threshold))


def pipelined_matmul(num_chunks=None):
    """A matrix product: all of them are made in overlapping tiles."""
    del num_chunks
    return executor.matmul()


def stencil(boundary="zero", iterations=1, **_):
    """A pass of at most 16 sweeps."""
    return executor.stencil_pass(boundary, max(1, min(iterations, 16)))


def jacobi(dx=1.0, boundary="zero", iterations=1000, **_):
    """A pass of at most 16 sweeps."""
    return executor.jacobi_pass(dx, boundary, max(1, min(iterations, 16)))


_BY_NAME = {
    "matmul": executor.matmul,
    "matmul_mixed_precision": mixed_precision,
    "matmul_sparse_aware": sparse_aware,
    "pipelined_matmul": pipelined_matmul,
    "batch_matmul": executor.batch_matmul,
    "transpose": executor.transpose,
    "add": executor.add,
    "conv2d": convolution,
    "conv3d": convolution,
    "fft": executor.fft,
    "ifft": executor.ifft,
    "rfft": executor.rfft,
    "fft2d": executor.fft2d,
    "fft2d_pencil": executor.fft2d,
    "tensordot": executor.tensordot,
    "stencil_2d": stencil,
    "jacobi_2d": jacobi,
    **{
        name: functools.partial(reduction, name)
        for name in ("sum", "mean", "max", "min", "sum_kahan", "mean_kahan")
    },
}

NAMES = ("einsum", "einsum_with_path", *_BY_NAME)


def operation_of(op, arguments, **options):
    """(TileOperation, shapes) of an operation by name; of einsum the first argument is the equation."""
    if op not in NAMES:
        raise ExecutionError(f"{op!r} is no operation; there are {', '.join(sorted(NAMES))}")
    if op.startswith("einsum"):
        if not arguments or not isinstance(arguments[0], str):
            raise ExecutionError(f"{op}: the first argument must be the equation")
        return executor.einsum(arguments[0], **options), list(arguments[1:])
    return _BY_NAME[op](**options), list(arguments)
