"""GPUs. Importing this module touches none; the first use of one does.

On a machine without a usable GPU a program runs as far as it needs none: settings are checked and
kept, and take effect with the first use of a GPU; questions are answered (`is_available` False,
`device_count` and bytes 0, no figures, no leaks); `empty_cache` and its kind have nothing to do. What
needs a GPU (`current_device`, `set_device`, `synchronize`, memory of one) raises the `DeviceError`
that says what is missing and how to use the CPU.
"""

import functools
import inspect
import math
from collections import Counter
from typing import ClassVar

import cuop
from cuop import _core, clear_kernel_cache, enable_profiling, set_kernel_fusion
from cuop._arguments import describe, switch
from cuop.memory import snapshot_name
from genesis.kernels import warm_up_kernels

__all__ = [
    # devices
    "current_device",
    "device_count",
    "is_available",
    "set_device",
    "synchronize",
    # kernels
    "clear_kernel_cache",
    "enable_lazy_init",
    "enable_profiling",
    "set_kernel_fusion",
    "warm_up_kernels",
    # memory that is kept, and how much of it
    "CUDAMemoryPool",
    "CUDAStorage",
    "empty_cache",
    "set_cache_size",
    "set_memory_fraction",
    "set_memory_limit",
    # figures of memory
    "get_memory_stats",
    "memory_stats",
    "memory_allocated",
    "memory_reserved",
    "max_memory_allocated",
    "reset_peak_memory_stats",
    "memory_summary",
    "memory_snapshot",
    # what watches it
    "check_memory",
    "enable_memory_debugging",
    "memory_leaks",
    "set_memory_callback",
]


def device_count():
    """Number of GPUs that this process can use; 0 without any."""
    return cuop.device_count("cuda")


def is_available():
    """True when there is a GPU that this process can use."""
    return device_count() > 0


def _name(device=None):
    """What a GPU is called (default: the current one), whether or not it is there."""
    if device is None:
        current = cuop.current_device()
        device = current if current.type == "cuda" else "cuda"
    elif isinstance(device, int) and not isinstance(device, bool):
        device = f"cuda:{device}"
    refusal = cuop.DeviceError(
        f"cuda: device: {describe(device)} is not a GPU; use 'cuda' or 'cuda:N'"
    )
    try:
        name = str(device)
    except (TypeError, RecursionError) as error:  # what cannot be printed names no device
        raise refusal from error
    if not name.startswith("cuda"):
        raise refusal
    return str(cuop.Device(name))  # 'cuda' with its number


_kept = {}  # what was set while there was no GPU: the last call of each setting and device


def _gpu(device=None):
    """The name of a usable GPU (default: the current one); DeviceError when it is not there."""
    name = _name(device)
    cuop.device_description(name)  # DeviceError with the reason when it cannot be used
    for key in [key for key in _kept if key[1] == name]:
        _kept.pop(key)()
    return name


def _without_gpu(otherwise):
    """The function of `(device=None)`, which without any GPU returns `otherwise()` instead."""

    def decorate(function):
        @functools.wraps(function)
        def figure(device=None):
            name = _name(device)
            return function(_gpu(name)) if is_available() else otherwise()

        return figure

    return decorate


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
    """True, the default, touches a GPU on first use only; False does so now.

    False raises DeviceError where there is no GPU.
    """
    if not switch(is_lazy, "enable_lazy_init", "is_lazy"):
        _gpu()


@_without_gpu(lambda: 0)
def empty_cache(device=None):
    """Returns idle cached GPU memory to the system; live tensors are never touched.

    Returns how many bytes these were, 0 without a GPU.
    """
    return cuop.empty_cache(device)


@_without_gpu(Counter)
def memory_stats(device=None):
    """Bytes `allocated cached reserved free fragmentation peak_allocated` and more.

    See `cuop.memory_stats`. Without a GPU an empty dict, in which every figure reads 0.
    """
    return cuop.memory_stats(device)


get_memory_stats = memory_stats


@_without_gpu(lambda: 0)
def memory_allocated(device=None):
    """Bytes of live tensors, 0 without a GPU."""
    return cuop.memory_allocated(device)


@_without_gpu(lambda: 0)
def memory_reserved(device=None):
    """Bytes held from the system, live or idle; 0 without a GPU."""
    return cuop.memory_reserved(device)


@_without_gpu(lambda: 0)
def max_memory_allocated(device=None):
    """Most bytes of live tensors since the last reset, 0 without a GPU."""
    return cuop.max_memory_allocated(device)


@_without_gpu(lambda: None)
def reset_peak_memory_stats(device=None):
    """Makes the present use the peak."""
    cuop.reset_peak_memory_stats(device)


@_without_gpu(lambda: "no GPU, and no memory of one")
def memory_summary(device=None):
    """The memory figures as a table; without a GPU a line that says so."""
    return cuop.memory_summary(device)


@_without_gpu(list)
def check_memory(device=None):
    """Looks at every guarded tensor; a list of what was ever found wrong, empty without a GPU."""
    return cuop.check_memory(device)


@_without_gpu(list)
def memory_leaks(device=None):
    """Guarded tensors that are alive, largest first: (bytes, age in seconds, place)."""
    return cuop.memory_leaks(device)


def memory_snapshot(path, device=None):
    """Writes the state of the memory and its history; without a GPU that there is none.

    See `cuop.memory_snapshot`. Returns the names of both files.
    """
    name = _name(device)
    if is_available():
        return cuop.memory_snapshot(path, _gpu(name))
    return _core.write_empty_snapshot(name, snapshot_name(path))


def _setting(function):
    """The setter of `cuop.memory` for GPUs, the current one by default.

    Without any GPU the values are checked all the same and the call is kept for the first use of one.
    """

    signature = inspect.signature(function)

    @functools.wraps(function)
    def set_on_gpu(*args, **options):
        try:
            call = signature.bind(*args, **options)
        except TypeError as error:
            raise TypeError(f"{function.__name__}: {error}") from None
        name = _name(call.arguments.get("device"))
        call.arguments["device"] = _gpu(name) if is_available() else name
        try:
            function(*call.args, **call.kwargs)
        except cuop.DeviceError:  # raised last: the values are in order
            if is_available():
                raise
            _kept[function.__name__, name] = functools.partial(function, *call.args, **call.kwargs)

    set_on_gpu.__doc__ = (
        f"{function.__doc__}\n\n    Without a GPU this is kept, and done with the first use of one."
    )
    return set_on_gpu


set_memory_fraction = _setting(cuop.set_memory_fraction)
set_memory_limit = _setting(cuop.set_memory_limit)
set_cache_size = _setting(cuop.set_cache_size)
set_memory_callback = _setting(cuop.set_memory_callback)
enable_memory_debugging = _setting(cuop.enable_memory_debugging)


class CUDAMemoryPool(cuop.MemoryPool):
    """Raw blocks of GPU memory; one pool a GPU, which `get_instance` returns.

    Without a GPU the figures are 0 and `allocate` raises DeviceError.
    """

    _instances: ClassVar[dict] = {}

    def __init__(self, device=None):
        # Never the CPU, whatever the current device is.
        super().__init__(_gpu(device) if is_available() else _name(device))

    @classmethod
    def get_instance(cls, device=None):
        """The pool of the GPU (default: the current one)."""
        name = _gpu(device) if is_available() else _name(device)
        return cls._instances.setdefault(name, cls(name))

    def allocate(self, size):
        """Address of a new block of `size` bytes (or '2MB')."""
        _gpu(self._device)
        return super().allocate(size)

    def _figure(self, name):
        return super()._figure(name) if is_available() else 0

    @property
    def free_bytes(self):
        """Bytes that the device could still give."""
        return super().free_bytes if is_available() else 0


class CUDAStorage:
    """Memory of a GPU for `shape` elements of `dtype`, taken when it is first used."""

    def __init__(self, shape, dtype, device_id=0):
        try:
            self.dtype = cuop.dtype(dtype)
        except cuop.Error as error:
            words = str(error).removeprefix("dtype: ")
            raise type(error)(f"CUDAStorage: {words}") from error
        try:
            self.shape = cuop.broadcast_to(cuop.empty(1, self.dtype, device="cpu"), shape).shape
        except cuop.Error as error:
            words = str(error).replace("broadcast_to", "CUDAStorage", 1)
            raise type(error)(words) from error
        _name(device_id)  # DeviceError for what names no GPU
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
