"""Kernels before they are needed."""

import cuop
from cuop._arguments import refused

__all__ = ["warm_up_kernels"]

_SMALL = (64, 64)
_COMMON = ("add", "multiply", "exp", "relu", "sum", "max", "softmax", "matmul")


def _product(x):
    if x.ndim < 2:
        return cuop.matmul(x, x)
    return cuop.matmul(x, cuop.swapaxes(x, -1, -2))


_CALLS = {"matmul": _product, "where": lambda x: cuop.where(x > 0, x, x)}


def _run(name, x):
    """Calls the operation with `x` for every argument that it needs."""
    if name in _CALLS:
        return _CALLS[name](x)
    function = getattr(cuop, name)
    for arguments in ([x], [x, x], [x, x, x]):
        try:
            return function(*arguments)
        except TypeError as error:  # one is missing; what is wrong with x is an error of cuop
            if isinstance(error, cuop.Error):
                raise
    raise cuop.ExecutionError(f"'{name}' is no operation of one to three tensors alone")


def _check_name(name):
    function = getattr(cuop, name, None)
    if isinstance(function, type) or not hasattr(function, "__nb_signature__"):
        raise cuop.ExecutionError(
            f"warm_up_kernels: kernels: there is no operation '{name}'; give names as 'add' or "
            "'softmax', or shapes as (1024, 1024)"
        )


def warm_up_kernels(kernels=(), dtype="float32", device=None):
    """Runs operations once, so that what they need is compiled, chosen and loaded afterwards.

    `kernels` holds names of operations ('add', 'softmax', 'matmul') and shapes. Each name is run on
    tensors of each shape, (64, 64) without any; shapes alone run the common operations. The device
    is the GPU in use, without one the CPU, where it starts threads and opens libraries. Returns how
    many operations were run. Raises ExecutionError for a name that is no operation, ShapeError for a
    shape that an operation cannot have.
    """
    if isinstance(kernels, str):
        kernels = [kernels]
    if not isinstance(kernels, (list, tuple)):
        raise refused(kernels, "warm_up_kernels", "kernels", "a list of names and shapes")
    names = [kernel for kernel in kernels if isinstance(kernel, str)]
    shapes = [kernel for kernel in kernels if not isinstance(kernel, str)]
    for name in names:
        _check_name(name)
    if device is None:
        current = cuop.current_device()
        has_gpu = current.type == "cuda" or cuop.device_count("cuda") > 0
        device = current if current.type == "cuda" else "cuda" if has_gpu else "cpu"
    count = 0
    for shape in shapes or [_SMALL]:
        try:
            x = cuop.ones(shape, dtype=dtype, device=device)
        except (cuop.DTypeError, cuop.ShapeError) as error:
            text = str(error).removeprefix("ones: ").replace("shape: ", "kernels: a shape: ", 1)
            raise type(error)(f"warm_up_kernels: {text}") from error
        for name in names or _COMMON:
            try:
                _run(name, x)
            except (cuop.DTypeError, cuop.ShapeError, cuop.ExecutionError) as error:
                raise type(error)(f"warm_up_kernels: kernels: {error}") from error
            count += 1
    cuop.synchronize(device)  # what failed on the way is raised here
    return count
