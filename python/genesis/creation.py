"""Making tensors: on the CPU unless a device is given."""

import functools

import cuop

__all__ = [
    "TensorDouble",
    "TensorFloat",
    "arange",
    "asarray",
    "device",
    "empty",
    "eye",
    "full",
    "linspace",
    "logspace",
    "ones",
    "permutation",
    "randint",
    "random",
    "tensor",
    "uniform",
    "zeros",
]


def _is_python_number(data, levels=64):
    if isinstance(data, (list, tuple)):  # deeper than a tensor, as one that holds itself, is none
        return levels > 0 and all(_is_python_number(item, levels - 1) for item in data)
    return isinstance(data, (int, float)) and not isinstance(data, bool)


def device(name):
    """The device called "cpu", "cuda" or "cuda:N", as an object that `device=` and `to()` take.

    Raises DeviceError for a GPU that this process cannot use, with what is missing (driver, device)
    and how to use the CPU.
    """
    chosen = cuop.Device(name)
    if chosen.type == "cuda":
        cuop.device_description(chosen)
    return chosen


def tensor(data, dtype=None, device=None):
    """A new tensor of an array, nested list, number or DLPack producer.

    Python numbers, whole ones too, become float32; arrays and tensors keep their dtype. The default
    device is the CPU. Raises DeviceError for a device that is not there.
    """
    if dtype is None and _is_python_number(data):
        dtype = "float32"
    return cuop.tensor(data, dtype=dtype, device="cpu" if device is None else device)


def asarray(data, *, device=None):
    """The data as a tensor that shares the memory of an array, and so lies where that lies.

    Lists and Python numbers become what `tensor` makes of them, on the CPU unless a `device` is
    given. An array goes to the `device`, copied if need be, when one is given.
    """
    if isinstance(data, (list, tuple, bool, int, float, complex)):
        return tensor(data, device=device)
    return cuop.asarray(data, device=device)


def _on_the_cpu(function):
    """The cuop function with the CPU as its default device."""

    @functools.wraps(function)
    def made(*args, device=None, **options):
        if device is None and options.get("out") is None:
            device = "cpu"
        return function(*args, device=device, **options)

    made.__doc__ = f"{function.__doc__}\n\nOn the CPU unless `device` is given."
    return made


empty = _on_the_cpu(cuop.empty)
zeros = _on_the_cpu(cuop.zeros)
ones = _on_the_cpu(cuop.ones)
full = _on_the_cpu(cuop.full)
eye = _on_the_cpu(cuop.eye)
arange = _on_the_cpu(cuop.arange)
linspace = _on_the_cpu(cuop.linspace)
logspace = _on_the_cpu(cuop.logspace)
random = _on_the_cpu(cuop.random)
uniform = _on_the_cpu(cuop.uniform)
randint = _on_the_cpu(cuop.randint)
permutation = _on_the_cpu(cuop.permutation)
TensorFloat = _on_the_cpu(cuop.TensorFloat)
TensorDouble = _on_the_cpu(cuop.TensorDouble)
