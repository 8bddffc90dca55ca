"""Devices and their memory: which there are, which is used, what they hold."""

import contextlib
import gc

from cuop import _core
from cuop._arguments import integer
from cuop._core import Device
from cuop.errors import DeviceError

__all__ = [
    "empty_cache",
    "get_device",
    "get_device_count",
    "get_memory_info",
    "memory_context",
    "set_device",
    "synchronize",
]


def get_device_count():
    """Number of devices that `set_device` accepts: the usable GPUs, or 1 (the CPU) without any."""
    return max(1, _core.device_count("cuda"))


def get_device():
    """Index of the device on which this thread makes new tensors; 0 when that is the CPU.

    `current_device()` gives the device itself.
    """
    return _core.current_device().index


def set_device(device):
    """Chooses the device on which this thread makes new tensors.

    Args: an index below `get_device_count()`, or a name ('cpu', 'cuda:1').
    Raises DeviceError when there is no such device.
    """
    if isinstance(device, (str, Device)):
        _core.set_current_device(device)
        return
    index, count = integer(device, "set_device", "device"), get_device_count()
    if not 0 <= index < count:
        raise DeviceError(f"set_device: {index} is out of range; there are {count} devices")
    _core.set_current_device(f"cuda:{index}" if _core.device_count("cuda") else "cpu")


def synchronize(device=None):
    """Waits until all work of the device (default: the current one) is done."""
    _core.synchronize(_core.current_device() if device is None else device)


def get_memory_info(device=None):
    """(free, total) bytes of the device (default: the current one)."""
    return _core.memory_info(_core.current_device() if device is None else device)


def empty_cache(device=None):
    """Returns idle cached memory to the system; live tensors are never touched.

    Returns the number of bytes that were given back.
    """
    return _core.release_cached(_core.current_device() if device is None else device)


@contextlib.contextmanager
def memory_context(device=None):
    """What is created inside and not kept alive elsewhere is returned to the system at exit."""
    try:
        yield
    finally:
        gc.collect()  # tensors held only by reference cycles
        empty_cache(device)
