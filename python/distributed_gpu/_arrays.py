"""Arrays of any library in, arrays of the same library, on the same kind of device, out."""

import sys

import numpy as np

import cuop
from cuop import dist
from cuop._arguments import number, refused
from cuop.errors import ExecutionError


def as_tensor(array, who, name, device=None):
    """The array as a cuop tensor; errors begin with the call and the argument."""
    try:
        return cuop.asarray(plain(array), device=device)
    except cuop.errors.Error as error:
        text = str(error)
        for head in ("asarray", "array", "tensor", "data", "from_dlpack"):
            text = text.removeprefix(f"{head}: ")
        raise type(error)(f"{who}: {name}: {text}") from error


def root_tensor(array, who, name):
    """as_tensor of what one rank gives to all. Lists and numbers stay on the host, not on the current
    GPU: ranks work on GPUs when an input lies on one.
    """
    if isinstance(array, cuop.Tensor):
        return array
    has_no_memory = isinstance(array, (list, tuple, int, float, complex))
    return as_tensor(array, who, name, device="cpu" if has_no_memory else None)


def kind_of(array):
    """The library of an array by name: "cuop", "torch", another array module, else "numpy"."""
    if isinstance(array, cuop.Tensor):
        return "cuop"
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return "torch"
    if isinstance(array, np.ndarray) or not hasattr(array, "__array_namespace__"):
        return "numpy"
    return array.__array_namespace__().__name__


def dtype_name(dtype):
    """The name of a dtype of any library: torch.float16 and numpy.float16 are "float16"."""
    text = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return text.rpartition(".")[2]


def narrow_wire(comm_dtype, who):
    """dist.Wire of elements that travel as `comm_dtype`; errors begin with the call and the argument."""
    try:
        name = dtype_name(comm_dtype)
    except (TypeError, RecursionError) as error:  # of what cannot be printed
        raise refused(comm_dtype, who, "comm_dtype", "a dtype or its name") from error
    try:
        return dist.Wire.narrow(name)
    except cuop.errors.Error as error:
        text = str(error).removeprefix("narrow: ").removeprefix("dtype: ")
        raise type(error)(f"{who}: comm_dtype: {text}") from error


def sparse_wire(threshold, who):
    """dist.Wire of blocks without their zeros; errors begin with the call and the argument."""
    name = "sparsity_threshold"
    if threshold is None:
        return dist.Wire.sparse()
    part = number(threshold, who, name)
    if not 0 <= part <= 1:
        raise ExecutionError(f"{who}: {name} is {part:g}; it must be from 0 to 1, or None")
    return dist.Wire.sparse(part)


def place_of(array, tensor):
    """(library, device) by name of an array that was made a tensor; the device is "cpu" or a GPU, as
    in "cuda:1".
    """
    return kind_of(array), str(tensor.device)


def this_ranks(place):
    """The place of another rank's array as it is here: GPUs are each rank's own, the current one."""
    kind, device = place
    if device == "cpu":
        return place
    here = cuop.current_device()
    return kind, str(here) if here.type == "cuda" else "cuda"


def to_place(tensor, place):
    """A cuop tensor as an array of the library and on the device that `place` names; None stays None.

    It shares the tensor's memory where that is the device's. DeviceError when this rank has no GPU
    to hold it.
    """
    if tensor is None:
        return None
    kind, device = place
    return to_kind(tensor.to(device), kind)


def in_own_memory(tensor, x):
    """A tensor made of the DistTensor x, copied where it lies in the memory of x's part; None stays
    None.
    """
    part = x.local
    if tensor is None or part is None or tensor.device != part.device:
        return tensor
    (begin, end), (first, last) = _span(tensor), _span(part)
    return tensor.copy() if begin < last and first < end else tensor


def _span(tensor):
    """The addresses between which a tensor's elements lie."""
    if tensor.size == 0:
        return 0, 0
    steps = [(n - 1) * step for n, step in zip(tensor.shape, tensor.strides, strict=True)]
    low, high = (sum(pick(step, 0) for step in steps) for pick in (min, max))
    address = tensor.data_ptr()
    return address + low * tensor.itemsize, address + (high + 1) * tensor.itemsize


def to_kind(tensor, kind):
    """A cuop tensor as an array of the named library, sharing memory; None stays None.

    A library that is not imported here (the kind may come from another rank) gives NumPy arrays.
    """
    if tensor is None or kind == "cuop":
        return tensor
    library = sys.modules.get(kind)
    if kind == "numpy" or library is None:
        return np.asarray(tensor)
    return library.from_dlpack(tensor)


def plain(array):
    """The array without what only its own library understands (torch's gradients)."""
    if isinstance(array, type):  # which has the methods of its objects
        raise cuop.DTypeError(f"array: the class {array.__name__} is none; an object of it may be")
    return array.detach() if kind_of(array) == "torch" else array
