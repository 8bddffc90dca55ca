"""Files that appear complete under their name or not at all."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from cuop._arguments import file_path
from cuop.errors import FileError

__all__ = ["check_writable", "replace_file"]

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replace_file(path: str | os.PathLike, who: str, size: int | None = None) -> Iterator[BinaryIO]:
    """A file to write to, which takes the name `path` when the block ends without an error.

    The bytes go to a temporary file in the same directory, are forced to disk and renamed. Raises
    FileError, begun with `who`, when the path cannot be written or the disk is full; what was
    under that name before is then still there. A file that is replaced passes its permissions on.
    size: the bytes that it will have, which are named where there is no room for them.
    """
    path = _resolve(path, who)
    before = _status(path, who)
    handle, temporary = _open_beside(path, who, before)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            _take_name(file.fileno(), temporary, path, before)
    except BaseException as error:
        with suppress(OSError):  # it may have its name already; the error counts
            os.unlink(temporary)
        if isinstance(error, OSError) and not isinstance(error, FileError):
            raise _write_error(path, who, error, size) from error
        raise


def take_name(handle: int, written: Path, path: Path, who: str) -> None:
    """The open file `written` beside `path` takes that name as `replace_file` does; FileError."""
    before = _status(path, who)
    try:
        _take_name(handle, written, path, before)
    except OSError as error:
        raise _write_error(path, who, error) from error


def check_writable(path: str | os.PathLike, who: str) -> None:
    """Raise FileError now when `replace_file` would fail for want of a directory or of rights."""
    path = _resolve(path, who)
    handle, temporary = _open_beside(path, who, _status(path, who))
    os.close(handle)
    os.unlink(temporary)


def _resolve(path: str | os.PathLike, who: str) -> Path:
    """The path without links: a link stays a link, what it leads to is replaced."""
    given = file_path(path, who)
    try:
        return given.resolve()
    except RuntimeError as error:  # Python's word for a loop
        raise FileError(f"{who}: {given} cannot be written: its links form a loop") from error
    except OSError as error:
        raise _write_error(given, who, error) from error


def _status(path: Path, who: str) -> os.stat_result | None:
    """Of the ordinary file that would be replaced; None where there is none."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _write_error(path, who, error) from error
    if stat.S_ISDIR(status.st_mode):
        raise FileError(f"{who}: {path} is a directory, needed is a file name")
    if stat.S_ISLNK(status.st_mode):
        raise FileError(f"{who}: {path} cannot be written: its links form a loop")
    if not stat.S_ISREG(status.st_mode):
        raise FileError(f"{who}: {path} is no ordinary file and would be replaced by one")
    return status


def _open_beside(path: Path, who: str, before: os.stat_result | None) -> tuple[int, str]:
    """A new file in the same directory, under a name that is short whatever the path's is.

    The system takes the umask off the mode. What replaces a file nobody else may read meanwhile.
    """
    temporary = str(path.with_name(f".cuop-{secrets.token_hex(8)}.part"))
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(temporary, flags, 0o666 if before is None else 0o600), temporary
    except OSError as error:
        raise FileError(f"{who}: {path} cannot be written: {error.strerror}") from error


def _take_name(handle: int, written: str | Path, path: Path, before: os.stat_result | None) -> None:
    if before is not None:
        _pass_on_permissions(handle, before)
    os.fsync(handle)
    os.replace(written, path)


def _pass_on_permissions(handle: int, before: os.stat_result) -> None:
    """Permission bits, and group and owner where this user may give the file to them."""
    mode = stat.S_IMODE(before.st_mode) & 0o777
    try:
        os.fchown(handle, -1, before.st_gid)
    except OSError:
        # What the one group was granted is nothing that another may have, unless everybody may.
        mode &= ~0o070 | (mode & 0o007) << 3
    with suppress(OSError):  # only root may give files away
        os.fchown(handle, before.st_uid, -1)
    os.fchmod(handle, mode)


def _write_error(path: Path, who: str, error: OSError, size: int | None = None) -> FileError:
    if error.errno in _FULL:
        needed = "" if size is None else f": it needs {size} bytes"
        return FileError(
            f"{who}: no room for {path}{needed} ({error.strerror}); nothing was written under that name"
        )
    return FileError(f"{who}: {path} cannot be written: {error.strerror}")
