"""What this machine and this process have to offer."""

import os

from cuop import _core
from cuop.device import get_memory_info

__all__ = ["print_system_info", "system_info"]


def _gigabytes(count):
    return f"{count / 2**30:.1f} GiB"


def system_info():
    """The facts that `print_system_info` prints, as a dict of strings by title."""
    import platform

    from cuop import __version__

    free, total = get_memory_info("cpu")
    blas = _core.blas_info()
    facts = {
        "cuOP": f"{__version__}, Python {platform.python_version()}",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "CPU": _core.device_description("cpu"),
        "instruction set": _core.cpu_isa(),
        "threads": f"{_core.thread_count()} of {os.cpu_count()} cores",
        "memory": f"{_gigabytes(free)} free of {_gigabytes(total)}",
        "BLAS": f"{blas['version'] or blas['path']}" if blas["available"] else blas["reason"],
        "current device": str(_core.current_device()),
        "GPUs": str(_core.device_count("cuda")),
    }
    if not _core.device_count("cuda"):
        facts["why no GPU"] = _core.cuda_absence_reason()
    return facts


def print_system_info():
    """Prints the machine, the devices, the libraries and what is missing."""
    facts = system_info()
    width = max(map(len, facts))
    for title, text in facts.items():
        print(f"{title:<{width}}  {text}")
