"""What a run has done of its output, written down so that a later one can go on with it."""

import errno
import json
import os
import stat
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_VERSION = 3
#: Number, way and counts of a pass.
State = tuple[int, str, list[int]]


@dataclass(frozen=True)
class Left:
    """Of a run that was cut off: the arrays it has, and the pass it was in."""

    arrays: list[tuple[tuple[int, ...], str]]
    state: State


class Journal:
    """A file whose first line says of which call, arrays and pass it is; each other line is a tile of
    that pass that is in its place, with what is to be known of it. A line begins with its checksum:
    one that is damaged or cut off says nothing, so that its tile is made again.

    Every pass has a new one, which takes the name when the arrays of the pass before are on the disk.
    Tiles are in the memory of the system when they are noted: after it has started anew only passes
    are believed.
    """

    def __init__(self, path: Path, call: dict):
        self.path, self._call = path, call
        self._handle: int | None = None
        self._lines: list[str] = []
        self._is_of_this_start = False

    @classmethod
    def joined(cls, place: list) -> "Journal | None":
        """That of another process, by its `place`; None where it is not here."""
        path, identity = place
        journal = cls(Path(path), {})
        try:
            journal._append()
        except OSError:
            return None
        if journal.place()[1] != identity:
            journal.close()
            return None
        return journal

    def read(self) -> Left | None:
        """What an earlier run of this call has left."""
        try:
            head, *lines = self._read()
            found = json.loads(_unsealed(head))
            if (found["version"], found["call"]) != (_VERSION, json.loads(json.dumps(self._call))):
                return None
            arrays = [(tuple(shape), dtype) for shape, dtype in found["arrays"]]
            number, way, counts = found["pass"]
            self._is_of_this_start = found["start"] == _start_of_system()
        except (OSError, IndexError, KeyError, TypeError, ValueError):
            return None
        self._lines = lines
        return Left(arrays, (number, way, counts))

    def is_of_this_start(self) -> bool:
        """Whether the system has not started anew since: then the tiles that were read are believed."""
        return self._is_of_this_start

    def start(self, arrays: list, state: State) -> None:
        """A pass begins: nothing of it is done."""
        self.close()
        head = {
            "version": _VERSION,
            "call": self._call,
            "arrays": arrays,
            "pass": state,
            "start": _start_of_system(),
        }
        beside = self.path.with_name(self.path.name + "-new")
        with suppress(FileNotFoundError):
            beside.unlink()
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, sealed(json.dumps(head)))
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(beside, self.path)
        self._lines = []
        self._append()

    def go_on(self) -> list:
        """The tiles of the pass that was read, (low, high, figures) each, to which others are added."""
        done = _tiles(self._lines)
        self._append()
        os.write(self._handle, b"\n")  # the last line may be cut off
        return done

    def add(self, low: list[int], high: list[int], figures: list[float]) -> None:
        """One write to the end, which none of another process parts."""
        if self._handle is not None:
            os.write(self._handle, sealed(json.dumps([low, high, figures])))

    def has_progress(self) -> bool:
        """Whether a later run would find anything done."""
        with suppress(OSError, ValueError):
            head, *lines = self._read()
            return bool(lines) or json.loads(_unsealed(head))["pass"][0] > 0
        return False

    def place(self) -> list:
        """By what another process joins it."""
        if self._handle is None:  # of a run that keeps nothing
            return ["", []]
        status = os.fstat(self._handle)
        return [str(self.path), [status.st_dev, status.st_ino]]

    def close(self) -> None:
        """Nothing more is noted."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _append(self) -> None:
        self._handle = open_own(self.path, os.O_WRONLY | os.O_APPEND)

    def _read(self) -> list[str]:
        with os.fdopen(open_own(self.path, os.O_RDONLY), errors="replace") as file:
            return file.read().splitlines()


def open_own(path: Path, flags: int) -> int:
    """A handle of an ordinary file; OSError for what else may be there, of which a pipe is not waited
    for and a link not followed."""
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise OSError(errno.EINVAL, "it is no ordinary file")


def sealed(text: str) -> bytes:
    """A line of a journal."""
    return f"{zlib.crc32(text.encode()):08x} {text}\n".encode()


def _unsealed(line: str) -> str:
    """What the line says; ValueError for one that is damaged or cut off."""
    _, _, text = line.partition(" ")
    if sealed(text) != f"{line}\n".encode():
        raise ValueError("a damaged line")
    return text


def _start_of_system() -> str:
    """A name of the time since the system has started."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _tiles(lines: list[str]) -> list[tuple[list[int], list[int], list[float]]]:
    """What the lines say, but for those that are damaged or cut off."""
    tiles = []
    for line in lines:
        with suppress(ValueError):
            low, high, figures = json.loads(_unsealed(line))
            tiles.append((list(map(int, low)), list(map(int, high)), list(map(float, figures))))
    return tiles
