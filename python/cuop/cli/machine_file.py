"""Figures of machines that one need not have, from a file."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuop._core import _dist
from cuop.errors import FileError

#: What a figure may be, and whether a number from 0 on is that.
_ALLOWED = {
    "a number above 0": lambda value: value > 0,
    "a number of seconds, 0 or more": lambda value: True,
    "a number, 0 or more": lambda value: True,
    "a number from 0 to 1": lambda value: value <= 1,
    "a whole number above 0": lambda value: value > 0 and value == int(value),
}
_WHOLE = dict.fromkeys(("ranks_per_host", "memory"), "a whole number above 0")
#: Of one rank, and what each may be.
FIGURES = _dist.Machine.figures() | _WHOLE
#: Of the links between the host and a device, that between two devices that share what they read, and each row of the
#: host's memory that lies apart.
HOST_FIGURES = {
    "upload": "a number above 0",
    "download": "a number above 0",
    "duplex": "a number from 0 to 1",
    "between": "a number, 0 or more",
    "stretch": "a number of seconds, 0 or more",
}
#: Of the file: 1 knew no networks, 2 no transforms, 3 no calls, 4 nothing that overlaps, 5 no convolutions, 6 no short
#: products, 7 no recurrences, 8 no calls of tensors in parts; without one it is read alike.
_VERSIONS = (1, 2, 3, 4, 5, 6, 7, 8, 9)


@dataclass(frozen=True)
class Figures:
    """One rank's device (cuop.dist.Machine), and its link to the host where the file names it."""

    rank: Any
    host: dict[str, float]

    def tiles(self, devices: int, limit: int):
        """So many such devices with `limit` bytes each, for plans of tiles."""
        from cuop import executor

        return executor.TileMachine.of(devices, memory=limit, device=self.rank, **self.host)


def read_machine(path: Path | None) -> Figures:
    """The figures of the file, and of this machine what is not in it; FileError for anything else."""
    from cuop import dist

    figures = Figures(dist.Machine.of_device(), {})
    if path is None:
        return figures
    allowed = FIGURES | HOST_FIGURES
    for name, value in _members(path).items():
        if name not in allowed:
            raise FileError(f"plan: {path}: {name!r} is no figure; these are: {', '.join(allowed)}")
        if not _is_allowed(value, allowed[name]):
            raise FileError(f"plan: {path}: {name} is {value!r}; it must be {allowed[name]}")
        if name in HOST_FIGURES:
            figures.host[name] = float(value)
            continue
        setattr(figures.rank, name, int(value) if name in _WHOLE else float(value))
    return figures


def _is_allowed(value: Any, allowed: str) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < 2**63:
        return False
    return _ALLOWED[allowed](value)


def _members(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file() and path.exists():  # devices and pipes may have no end
            raise FileError(f"plan: {path} is no ordinary file")
        given = json.loads(path.read_text(encoding="utf-8"))
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"plan: {path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise FileError(f"plan: {path} cannot be read as JSON: {error}") from error
    if not isinstance(given, dict):
        raise FileError(f"plan: {path} holds no object of figures")
    version = given.pop("version", _VERSIONS[-1])
    if isinstance(version, bool) or version not in _VERSIONS:
        *earlier, last = map(str, _VERSIONS)
        known = f"{', '.join(earlier)} and {last}"
        raise FileError(f"plan: {path}: version is {version!r}; known are {known}")
    return given
