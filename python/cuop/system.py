"""What this machine and this process have to offer."""

import os
import platform
from typing import NamedTuple

from cuop import _core
from cuop.device import get_memory_info

__all__ = ["Part", "print_system_info", "system_info"]


class Part(NamedTuple):
    """Something that cuOP uses where it is there; `detail` is the reason when it is not."""

    name: str
    is_found: bool
    detail: str


def system_info() -> list[Part]:
    """The machine, the libraries and the devices, found or not and why."""
    free, total = get_memory_info("cpu")
    gpus = _core.device_count("cuda")
    return [
        Part("system", True, f"{platform.system()} {platform.release()}, {platform.machine()}"),
        Part("CPU", True, f"{_core.device_description('cpu')}, kernels for {_core.cpu_isa()}"),
        Part("threads", True, f"{_core.thread_count()} of {os.cpu_count()} cores"),
        Part("memory", True, f"{free / 2**30:.1f} GiB free of {total / 2**30:.1f} GiB"),
        *_cpu_libraries(),
        *(
            Part(
                row["title"], not row["reason"], row["reason"] or f"{row['path']} {row['version']}"
            )
            for row in _core.cuda_libraries()
        ),
        Part("GPU", gpus > 0, str(gpus) if gpus else _core.cuda_absence_reason()),
        Part("current device", True, str(_core.current_device())),
    ]


def _cpu_libraries() -> list[Part]:
    from cuop import dist

    blas, dnn = _core.blas_info(), _core.dnn_info()
    has_fft, fft = _core.fft_info()
    no_mpi = dist.mpi_unavailable_reason()
    return [
        Part(
            "BLAS",
            blas["available"],
            blas["reason"] or f"{blas['version']} ({blas['core']}) {blas['path']}",
        ),
        Part("FFTW", has_fft, fft),
        Part("oneDNN", dnn["available"], dnn["reason"] or f"{dnn['version']} {dnn['path']}"),
        Part("MPI", not no_mpi, no_mpi or "built for the MPI of this machine"),
    ]


def print_system_info() -> None:
    """Prints the version, the machine, the libraries and what is missing and why."""
    from cuop import __version__

    print(f"cuOP {__version__}, Python {platform.python_version()}")
    parts = system_info()
    width = max(len(part.name) for part in parts)
    for part in parts:
        print(f"{part.name:<{width}}  {'' if part.is_found else 'absent: '}{part.detail}")
