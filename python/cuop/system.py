"""What this machine and this process have to offer."""

import platform
from typing import NamedTuple

from cuop import _core

__all__ = ["Part", "print_system_info", "system_info"]


class Part(NamedTuple):
    """Something that cuOP uses where it is there; `detail` is the reason when it is not."""

    name: str
    is_found: bool
    detail: str


def system_info() -> list[Part]:
    """The machine, the libraries and the devices, found or not and why."""
    return [Part(*row) for row in _core.system_parts()]


def print_system_info() -> None:
    """Prints the version, the machine, the libraries and what is missing and why."""
    from cuop import __version__

    print(f"cuOP {__version__}, Python {platform.python_version()}")
    parts = system_info()
    width = max(len(part.name) for part in parts)
    for part in parts:
        print(f"{part.name:<{width}}  {'' if part.is_found else 'absent: '}{part.detail}")
