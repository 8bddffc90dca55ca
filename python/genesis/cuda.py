"""GPUs. Importing this module touches none; the first use of one does.

`is_available` and `device_count` answer on every machine. On a machine without a usable GPU the
other functions raise the `DeviceError` that says what is missing and how to use the CPU.
"""

import cuop

__all__ = [
    "clear_kernel_cache",
    "current_device",
    "device_count",
    "empty_cache",
    "enable_lazy_init",
    "get_memory_stats",
    "is_available",
    "max_memory_allocated",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_peak_memory_stats",
    "set_device",
    "synchronize",
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
    return name


def current_device():
    """Index of the GPU in use."""
    return cuop.Device(_gpu()).index


def set_device(device):
    """Makes a GPU ('cuda:N' or N) the one on which this thread makes new tensors."""
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


def memory_stats(device=None):
    """Bytes `allocated cached reserved free peak_allocated` of the GPU's memory."""
    name = _gpu(device)
    figures = cuop.memory_statistics(name)
    free, _ = cuop.get_memory_info(name)
    return {
        "allocated": figures["allocated_bytes"],
        "cached": figures["cached_bytes"],
        "reserved": figures["reserved_bytes"],
        "free": free,
        "peak_allocated": figures["peak_allocated_bytes"],
    }


get_memory_stats = memory_stats


def memory_allocated(device=None):
    """Bytes of live tensors."""
    return memory_stats(device)["allocated"]


def memory_reserved(device=None):
    """Bytes held from the system, live or idle."""
    return memory_stats(device)["reserved"]


def max_memory_allocated(device=None):
    """Most bytes of live tensors since the last reset."""
    return memory_stats(device)["peak_allocated"]


def reset_peak_memory_stats(device=None):
    """Makes the present use the peak."""
    cuop.reset_peak_memory(_gpu(device))


def memory_summary(device=None):
    """The memory figures as a table."""
    figures = memory_stats(device)
    return "\n".join(f"{name:<16}{value:>20,d}" for name, value in figures.items())


def clear_kernel_cache():
    """Forgets all chosen and compiled kernels; answers how many that were."""
    return cuop.clear_kernel_cache()
