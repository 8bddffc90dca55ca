"""GPUs. Importing this module touches none; the first use of one does.

`is_available` and `device_count` answer on every machine. On a machine without a usable GPU the
other functions raise the `DeviceError` that says what is missing and how to use the CPU.
"""

import functools
import inspect
import math
from typing import ClassVar

import cuop
from cuop import clear_kernel_cache, enable_profiling, set_kernel_fusion
from genesis.kernels import warm_up_kernels

__all__ = [
    "CUDAMemoryPool",
    "CUDAStorage",
    "check_memory",
    "clear_kernel_cache",
    "current_device",
    "device_count",
    "empty_cache",
    "enable_lazy_init",
    "enable_memory_debugging",
    "enable_profiling",
    "get_memory_stats",
    "is_available",
    "max_memory_allocated",
    "memory_allocated",
    "memory_leaks",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "reset_peak_memory_stats",
    "set_cache_size",
    "set_device",
    "set_kernel_fusion",
    "set_memory_callback",
    "set_memory_fraction",
    "set_memory_limit",
    "synchronize",
    "warm_up_kernels",
]


def device_count():
    """Number of GPUs that this process can use; 0 without any."""
    return cuop.device_count("cuda")


def is_available():
    """True when there is a GPU that this process can use."""
    return device_count() > 0


def _gpu(device=None):
    """The name of a usable GPU (default: the current one); DeviceError when it is not there."""
    if device is None:
        current = cuop.current_device()
        device = current if current.type == "cuda" else "cuda"
    elif isinstance(device, int) and not isinstance(device, bool):
        device = f"cuda:{device}"
    name = str(device)
    if not name.startswith("cuda"):
        raise cuop.DeviceError(f"cuda: {name} is not a GPU; use 'cuda' or 'cuda:N'")
    cuop.device_description(name)  # DeviceError with the reason when it cannot be used
    return str(cuop.Device(name))  # 'cuda' and 'cuda:0' are one


def current_device():
    """Index of the GPU in use."""
    return cuop.Device(_gpu()).index


def set_device(device):
    """Makes a GPU ('cuda:N' or N) the current one of this thread.

    It is the one that this module's functions mean and on which `cuop` makes new tensors; those of
    `genesis` stay on the CPU unless a device is given.
    """
    cuop.set_current_device(_gpu(device))


def synchronize(device=None):
    """Waits until all work of the GPU is done."""
    cuop.synchronize(_gpu(device))


def enable_lazy_init(is_lazy=True):
    """True, the default, touches a GPU on first use only; False does so now."""
    if not is_lazy:
        _gpu()


def empty_cache(device=None):
    """Returns idle cached GPU memory to the system; live tensors are never touched."""
    return cuop.empty_cache(_gpu(device))


def _on_gpu(function):
    """The function of `cuop.memory` with a GPU as its device, which is the current one by default."""

    signature = inspect.signature(function)

    @functools.wraps(function)
    def on_gpu(*args, **options):
        try:
            call = signature.bind(*args, **options)
        except TypeError as error:
            raise TypeError(f"{function.__name__}: {error}") from None
        call.arguments["device"] = _gpu(call.arguments.get("device"))
        return function(*call.args, **call.kwargs)

    return on_gpu


def memory_stats(device=None):
    """Bytes `allocated cached reserved free fragmentation peak_allocated` and more.

    See `cuop.memory_stats`.
    """
    return cuop.memory_stats(_gpu(device))


get_memory_stats = memory_stats


def memory_allocated(device=None):
    """Bytes of live tensors."""
    return cuop.memory_allocated(_gpu(device))


def memory_reserved(device=None):
    """Bytes held from the system, live or idle."""
    return cuop.memory_reserved(_gpu(device))


def max_memory_allocated(device=None):
    """Most bytes of live tensors since the last reset."""
    return cuop.max_memory_allocated(_gpu(device))


def reset_peak_memory_stats(device=None):
    """Makes the present use the peak."""
    cuop.reset_peak_memory_stats(_gpu(device))


def memory_summary(device=None):
    """The memory figures as a table."""
    return cuop.memory_summary(_gpu(device))


set_memory_fraction = _on_gpu(cuop.set_memory_fraction)
set_memory_limit = _on_gpu(cuop.set_memory_limit)
set_cache_size = _on_gpu(cuop.set_cache_size)
set_memory_callback = _on_gpu(cuop.set_memory_callback)
enable_memory_debugging = _on_gpu(cuop.enable_memory_debugging)
check_memory = _on_gpu(cuop.check_memory)
memory_leaks = _on_gpu(cuop.memory_leaks)
memory_snapshot = _on_gpu(cuop.memory_snapshot)


class CUDAMemoryPool(cuop.MemoryPool):
    """Raw blocks of GPU memory; one pool a GPU, answered by `get_instance`."""

    _instances: ClassVar[dict] = {}

    def __init__(self, device=None):
        super().__init__(_gpu(device))  # never the CPU, whatever the current device is

    @classmethod
    def get_instance(cls, device=None):
        """The pool of the GPU (default: the current one)."""
        name = _gpu(device)
        return cls._instances.setdefault(name, cls(name))


class CUDAStorage:
    """Memory of a GPU for `shape` elements of `dtype`, taken when it is first used."""

    def __init__(self, shape, dtype, device_id=0):
        self.shape = cuop.broadcast_to(cuop.zeros(1, dtype="bool", device="cpu"), shape).shape
        self.dtype = cuop.dtype(dtype)
        self.device_id = device_id
        self._tensor = None

    @property
    def is_allocated(self):
        """Whether the memory has been taken."""
        return self._tensor is not None

    @property
    def nbytes(self):
        """Size in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def tensor(self):
        """The memory as a tensor; uninitialised the first time."""
        if self._tensor is None:
            self._tensor = cuop.empty(self.shape, dtype=self.dtype, device=_gpu(self.device_id))
        return self._tensor

    def data_ptr(self):
        """Address of the first byte."""
        return self.tensor().data_ptr()
