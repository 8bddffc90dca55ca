"""An output file that is made in tiles, in any order, and may be finished by a later run."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from cuop.errors import FileError
from cuop.files import check_writable
from cuop.npy_header import read_header, write_header

_VERSION = 1


class PartialOutput:
    """Beside OUT: `.OUT.cuop-part`, the file with some of its tiles, and `.OUT.cuop-tiles`, which
    says of which call it is and which tiles are there, a line each.

    call: what must be the same for a later run to go on with it: the operation, and name, size and
    time of every input. OUT itself appears when everything is there.
    """

    def __init__(self, path: Path, call: dict, shape: tuple[int, ...], dtype: np.dtype):
        check_writable(path, "save")
        self.path = path.resolve()
        self._part = self.path.with_name(f".{self.path.name}.cuop-part")
        self._tiles = self.path.with_name(f".{self.path.name}.cuop-tiles")
        self._head = {"version": _VERSION, **call, "shape": list(shape), "dtype": str(dtype)}
        self.done: list[tuple[list[int], list[int]]] = []
        self._shape, self._dtype = tuple(shape), np.dtype(dtype)

    def resume(self) -> bool:
        """Whether an earlier run of the same call has left its tiles, which are `done` then."""
        try:
            lines = self._tiles.read_text().splitlines()
            found = json.loads(lines[0])
            if found != json.loads(json.dumps(self._head)):
                return False
            self._offset = self._data_offset()
            self.done = _apart(lines[1:], len(self._shape))
        except (OSError, IndexError, ValueError):  # HeaderError among them
            self.done = []
            return False
        return True

    @contextmanager
    def opened(self) -> Iterator[np.ndarray]:
        """The array to write to; FileError, and nothing is left, when the disk has no room for it."""
        is_new = not self.done
        if is_new:
            self.discard()
        handle = self._open(os.O_RDWR | os.O_CREAT)
        try:
            offset = self._begin(handle) if is_new else self._offset
            journal = os.open(
                self._tiles, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600
            )
            try:
                if is_new:
                    os.write(journal, json.dumps(self._head).encode() + b"\n")
                self._journal = journal
                self._handle, self._begin_of_data = handle, offset
                yield np.memmap(self._part, self._dtype, "r+", offset, self._shape)
            finally:
                os.close(journal)
            os.fsync(handle)
        finally:
            os.close(handle)

    def add(self, low, high) -> None:
        """A tile is in its place."""
        _add_line(self._journal, low, high)

    def place(self) -> dict:
        """By what other processes find what is `opened`: for SharedPart."""
        return {
            "part": (str(self._part), _identity(self._handle)),
            "tiles": (str(self._tiles), _identity(self._journal)),
            "offset": self._begin_of_data,
        }

    def finish(self) -> None:
        """Everything is there: the file takes its name."""
        os.replace(self._part, self.path)
        self._tiles.unlink()

    def discard(self) -> None:
        """Leaves nothing behind."""
        for file in (self._part, self._tiles):
            with suppress(FileNotFoundError):
                file.unlink()

    def _open(self, flags: int) -> int:
        try:
            return os.open(self._part, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise FileError(f"save: {self._part} cannot be written: {error.strerror}") from error

    def _begin(self, handle: int) -> int:
        """Writes the header and takes the room for all of the data."""
        with os.fdopen(os.dup(handle), "wb") as file:
            write_header(file, self._shape, self._dtype)
            offset = file.tell()
        size = offset + int(np.prod(self._shape, dtype=np.int64)) * self._dtype.itemsize
        try:
            os.posix_fallocate(handle, 0, size)
        except OSError as error:
            self.discard()
            raise FileError(
                f"save: no room for {self.path}: it needs {size} bytes ({error.strerror}); nothing was "
                "left under that name"
            ) from error
        return offset

    def _data_offset(self) -> int:
        """Where the data of the file with some of the tiles begin; ValueError when it is another's."""
        with os.fdopen(self._open(os.O_RDONLY), "rb") as file:
            header = read_header(file)
            size = os.fstat(file.fileno()).st_size
        if (header.shape, header.dtype, size) != (
            self._shape, self._dtype, header.offset + header.nbytes,
        ):  # fmt: skip
            raise ValueError("a file of another result")
        return header.offset


class SharedPart:
    """A PartialOutput of another process, whose tiles this one writes and notes as well."""

    def __init__(self, array: np.ndarray, journal: int):
        self.array, self._journal = array, journal

    def add(self, low, high) -> None:
        """A tile is in its place; one write to the end of the journal, which no other one parts."""
        _add_line(self._journal, low, high)

    def close(self) -> None:
        """Nothing more is noted."""
        os.close(self._journal)


def open_shared(place: dict, shape, dtype: np.dtype) -> SharedPart | None:
    """What `place` names; None where it is not here, as on another host."""
    handles = []
    try:
        for name, flags in [("part", os.O_RDWR), ("tiles", os.O_WRONLY | os.O_APPEND)]:
            path, identity = place[name]
            handles.append(os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC))
            if _identity(handles[-1]) != identity:
                raise FileNotFoundError(path)
        with os.fdopen(os.dup(handles[0]), "r+b") as file:
            array = np.memmap(file, dtype, "r+", place["offset"], shape)
        return SharedPart(array, handles.pop())
    except OSError:
        return None
    finally:
        for handle in handles:
            os.close(handle)


def _identity(handle: int) -> tuple[int, int]:
    status = os.fstat(handle)
    return status.st_dev, status.st_ino


def _add_line(journal: int, low, high) -> None:
    line = json.dumps([list(low), list(high)]) + "\n"
    os.write(journal, line.encode())


def _apart(lines: list[str], ndim: int) -> list[tuple[list[int], list[int]]]:
    """The boxes of these lines, but for those that overlap earlier ones.

    Runs with other limits or ranks cut other tiles; one of which a part was there is made again.
    """
    boxes: list[tuple[list[int], list[int]]] = []
    lows, highs = np.empty((2, len(lines), ndim), np.int64)
    for line in lines:
        with suppress(ValueError):  # the last one may be cut off
            low, high = json.loads(line)
            count = len(boxes)
            overlaps = (np.minimum(highs[:count], high) > np.maximum(lows[:count], low)).all(1)
            if not overlaps.any():
                lows[count], highs[count] = low, high
                boxes.append((low, high))
    return boxes
