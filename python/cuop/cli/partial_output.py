"""An output file that is made in tiles, in any order, and may be finished by a later run."""

import errno
import fcntl
import hashlib
import json
import math
import os
from contextlib import suppress
from pathlib import Path

import numpy as np

import cuop
from cuop import npy
from cuop.cli import console
from cuop.cli.journal import Journal, State, open_own
from cuop.errors import FileError
from cuop.files import check_writable, take_name
from cuop.npy_header import header_bytes, read_header, write_header

Array = tuple[tuple[int, ...], str]
Box = tuple[list[int], list[int], list[float]]
#: Of the files of arrays, in turns.
_KINDS = ("part", "pass", "pass2", "pass3")
#: Bytes of OUT's name that are found in theirs.
_LONGEST_NAME = 220


class PartialOutput:
    """Beside OUT: `.OUT.cuop-part` and, where passes take turns, `.OUT.cuop-pass`, `-pass2` and
    `-pass3`, arrays of which one becomes OUT; `.OUT.cuop-tiles` says of which call they are, which pass
    has begun and which of its tiles are there.

    The files are locked by who writes them: a second run of the same OUT raises FileError.

    It is the `log` of cuop.executor's calls. On rank 0: left, open, begin, array, place; on other
    processes: join; on each of them: note. Rank 0 finishes or discards it.

    call: () -> what must be the same for a later run to go on with it, as the operation, and name,
    size and time of every input. is_kept: whether a run that is cut off leaves anything.
    """

    def __init__(self, path: Path, call, is_kept: bool):
        self._call, self._path = call, path
        self.is_kept = is_kept
        self.path: Path | None = None
        self._files: list[_File] = []
        self._journal: Journal | None = None
        self._left: State | None = None
        self._last = 0
        self._is_noting = True

    # On rank 0.

    def left(self) -> State | None:
        """(number, way, counts) of the pass in which an earlier run of the same call was cut off."""
        check_writable(self._path, "save")
        path = self._path.resolve()
        _refuse_another_run(_beside(path, _KINDS[0]))
        self.path = path
        self._journal = Journal(self._beside("tiles"), self._call())
        if not self.is_kept:
            return None
        found = self._journal.read()
        if found is None:
            return None
        try:
            self._files = [_File(path, array) for path, array in self._places(found.arrays)]
            for file in self._files:
                file.open_left()
        except _InUse:
            self._keep_off()
            raise
        except (OSError, ValueError, FileError):  # HeaderError among them
            self.close()
            self._files = []
            return None
        self._left = found.state
        return found.state

    def open(self, arrays: list[Array]) -> None:
        """New files, unless those of an earlier run are `left`; FileError without room for them."""
        if self._left is not None:
            if [file.array for file in self._files] != arrays:
                raise FileError(
                    f"run: {self._beside('tiles')} is of a run with other arrays, with which this one "
                    "cannot go on; remove it, or leave --resume out"
                )
            return
        size = 0
        try:
            _refuse_another_run(self._beside(_KINDS[0]))
            self.discard()
            self._files = [_File(path, array) for path, array in self._places(arrays)]
            size = sum(file.size for file in self._files)
            _check_room(self.path.parent, size)
            for file in self._files:
                file.create()
        except _InUse:
            self._keep_off()
            raise
        except FileError:
            self.discard()
            raise
        except OSError as error:
            self.discard()
            raise FileError(
                f"save: no room for {self.path}: it needs {size} bytes ({error.strerror}); nothing was "
                "written under that name"
            ) from error

    def begin(self, state: State) -> list[Box]:
        """The pass begins; what is there of it already."""
        self._last = state[0]
        if self._left == state and self._journal.is_of_this_start():
            done = self._journal.go_on()
            where = (
                f"{len(done)} tiles of pass {state[0] + 1}" if state[0] else f"{len(done)} tiles"
            )
            console.console.print(f"going on behind {where}", markup=False)
            return done
        if self.is_kept:
            if state[0] > 0:
                self._file(state[0] - 1).flush()
            try:
                self._journal.start([file.array for file in self._files], state)
            except OSError as error:
                tiles = self._beside("tiles")
                raise FileError(f"save: {tiles} cannot be written: {error.strerror}") from error
        return []

    def array(self, number: int) -> cuop.Tensor:
        """What the pass of that number writes."""
        return self._file(number).tensor()

    def place(self) -> str:
        """By what other processes find the array and the journal."""
        file = self._file(self._last)
        return json.dumps(
            {"array": file.place(), "offset": file.offset, "tiles": self._journal.place()}
        )

    def finish(self, result: cuop.Tensor) -> None:
        """Everything is there: the array of the last pass takes the name, or of a call that needed none
        its result."""
        if not self._files:
            npy.save(self._path, np.asarray(result))
            self._discard_older()
            return
        self._file(self._last).take_name(self.path)
        self.discard()

    def leave(self) -> None:
        """A run has ended before: what it has done stays, if there is any of it and it is kept."""
        if self.has_progress():
            self.close()
        else:
            self.discard()

    def has_progress(self) -> bool:
        """Whether a later run would find anything done."""
        return self.is_kept and self._journal is not None and self._journal.has_progress()

    def discard(self) -> None:
        """Leaves nothing behind."""
        self.close()
        for kind in (*_KINDS, "tiles") if self.path is not None else ():
            beside = self._beside(kind)
            try:
                beside.unlink(missing_ok=True)
            except OSError as error:
                raise FileError(f"save: {beside} cannot be removed: {error.strerror}") from error

    # On another process.

    def join(self, place: str, array: Array) -> cuop.Tensor | None:
        """The array in this process; None where it is not here, as on another host, or where rank 0
        is a thread of this process."""
        if self._files:
            return None
        self.close()
        found = json.loads(place)
        handle = _open_same(found["array"], os.O_RDWR)
        if handle is None:
            return None
        with os.fdopen(handle, "r+b") as file:
            if self.is_kept:
                self._journal = Journal.joined(found["tiles"])
                if self._journal is None:
                    return None
            return _tensor(file, array, found["offset"])

    # On each, from any thread.

    def note(self, low: list[int], high: list[int], figures: list[float]) -> None:
        """A tile is in its place. One that cannot be noted would only be made again by a later run,
        so that this one goes on, and says so once."""
        if not self.is_kept or self._journal is None:
            return
        try:
            self._journal.add(low, high, figures)
        except OSError as error:
            if self._is_noting:
                self._is_noting = False
                console.errors.print(
                    f"cuop: run: {self._journal.path} cannot be written ({error.strerror}): a run that goes "
                    "on with this one will not know all of its tiles",
                    markup=False,
                )

    def close(self) -> None:
        """Files are closed."""
        for file in self._files:
            file.close()
        if self._journal is not None:
            self._journal.close()

    def _beside(self, kind: str) -> Path:
        return _beside(self.path, kind)

    def _discard_older(self) -> None:
        """What an earlier run of another call has left, unless somebody writes it now."""
        if self.path is not None:
            with suppress(_InUse):
                _refuse_another_run(self._beside(_KINDS[0]))
                self.discard()

    def _keep_off(self) -> None:
        """The files are another run's, which has been faster: none of them is touched."""
        self.close()
        self.path, self._files, self._journal = None, [], None

    def _places(self, arrays: list[Array]):
        if len(arrays) > len(_KINDS):
            raise ValueError(f"{len(arrays)} arrays, of which {len(_KINDS)} take turns at most")
        return zip(map(self._beside, _KINDS), arrays, strict=False)

    def _file(self, number: int) -> "_File":
        return self._files[number % len(self._files)]


class _InUse(FileError):
    """A file that another run writes."""

    def __init__(self, path: Path):
        super().__init__(
            f"save: {path} is being written by another run of the same output; wait for its end, or "
            "name another output"
        )


def _beside(path: Path, kind: str) -> Path:
    name = os.fsencode(path.name)
    if len(name) > _LONGEST_NAME:  # so that the system has room for what stands around it
        name = name[: _LONGEST_NAME - 17] + b"-" + hashlib.sha256(name).hexdigest()[:16].encode()
    return path.with_name(f".{os.fsdecode(name)}.cuop-{kind}")


def _refuse_another_run(path: Path) -> None:
    """FileError where another run writes this file now."""
    try:
        handle = open_own(path, os.O_RDWR)
    except OSError:
        return
    try:
        _claim(handle, path)
    finally:
        os.close(handle)


def _claim(handle: int, path: Path) -> None:
    """Locks the file until it is closed, where its system has locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise _InUse(path) from error
    except OSError:
        return


def _check_room(folder: Path, size: int) -> None:
    """OSError, before some systems fill up their disk and then say so."""
    system = os.statvfs(folder)
    if size > system.f_bavail * system.f_frsize:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class _File:
    """A .npy file of which parts may be missing."""

    def __init__(self, path: Path, array: Array):
        self.path, self.array = path, array
        self.offset = header_bytes(array[0], np.dtype(array[1]))
        self.size = self.offset + math.prod(array[0]) * np.dtype(array[1]).itemsize
        self._handle: int | None = None

    def create(self) -> None:
        """A new one; OSError when there is no room for all of it."""
        self._open(os.O_RDWR | os.O_CREAT | os.O_EXCL)
        with os.fdopen(os.dup(self._handle), "wb") as file:
            write_header(file, self.array[0], np.dtype(self.array[1]))
        os.posix_fallocate(self._handle, 0, self.size)

    def open_left(self) -> None:
        """One that is there; ValueError when it is of another array."""
        self._open(os.O_RDWR)
        with os.fdopen(os.dup(self._handle), "rb") as file:
            header = read_header(file)
            size = os.fstat(file.fileno()).st_size
        found = (tuple(header.shape), str(header.dtype), header.offset, size)
        if found != (*self.array, self.offset, self.size):
            self.close()
            raise ValueError("a file of another array")

    def tensor(self) -> cuop.Tensor:
        """Over the mapped file."""
        with os.fdopen(os.dup(self._handle), "r+b") as file:
            return _tensor(file, self.array, self.offset)

    def place(self) -> list:
        """Its path and identity."""
        return [str(self.path), _identity(self._handle)]

    def take_name(self, path: Path) -> None:
        """It is OUT from now on; FileError."""
        take_name(self._handle, self.path, path, "save")

    def flush(self) -> None:
        """To the disk."""
        os.fsync(self._handle)

    def close(self) -> None:
        if self._handle is not None:
            with suppress(OSError):  # mappings that are still there would keep the lock
                fcntl.flock(self._handle, fcntl.LOCK_UN)
            os.close(self._handle)
            self._handle = None

    def _open(self, flags: int) -> None:
        try:
            self._handle = open_own(self.path, flags)
        except FileExistsError as error:  # since what was there was removed
            raise _InUse(self.path) from error
        except OSError as error:
            raise FileError(f"save: {self.path} cannot be written: {error.strerror}") from error
        _claim(self._handle, self.path)


def _tensor(file, array: Array, offset: int) -> cuop.Tensor:
    shape, dtype = array
    if math.prod(shape) == 0:
        return cuop.asarray(np.empty(shape, dtype))  # of which nothing can be mapped
    return cuop.asarray(np.memmap(file, dtype, "r+", offset, tuple(shape)))


def _identity(handle: int) -> list[int]:
    status = os.fstat(handle)
    return [status.st_dev, status.st_ino]


def _open_same(place: list, flags: int) -> int | None:
    """The file of that path and identity; None where it is not here."""
    path, identity = place
    try:
        handle = open_own(path, flags)
    except OSError:
        return None
    if _identity(handle) != identity:
        os.close(handle)
        return None
    return handle
