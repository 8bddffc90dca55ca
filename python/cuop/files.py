"""Files that appear complete under their name or not at all."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from cuop._arguments import file_path
from cuop.errors import FileError

__all__ = ["check_writable", "replace_file"]

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replace_file(path: str | os.PathLike, who: str) -> Iterator[BinaryIO]:
    """A file to write to, which takes the name `path` when the block ends without an error.

    The bytes go to a temporary file in the same directory, are forced to disk and renamed. Raises
    FileError, begun with `who`, when the path cannot be written or the disk is full; what was
    under that name before is then still there.
    """
    path = file_path(path, who).resolve()  # a link stays a link; what it points to is replaced
    handle, temporary = _open_beside(path, who)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError) and not isinstance(error, FileError):
            raise _write_error(path, who, error) from error
        raise


def check_writable(path: str | os.PathLike, who: str) -> None:
    """Raise FileError now when `replace_file` would fail for want of a directory or of rights."""
    handle, temporary = _open_beside(file_path(path, who).resolve(), who)
    os.close(handle)
    os.unlink(temporary)


def _open_beside(path: Path, who: str) -> tuple[int, str]:
    if path.is_dir():
        raise FileError(f"{who}: {path} is a directory, needed is a file name")
    if path.exists() and not path.is_file():
        raise FileError(f"{who}: {path} is no ordinary file and would be replaced by one")
    try:
        return tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise FileError(f"{who}: {path} cannot be written: {error.strerror}") from error


def _write_error(path: Path, who: str, error: OSError) -> FileError:
    if error.errno in _FULL:
        return FileError(
            f"{who}: no room for {path} ({error.strerror}); nothing was left under that name"
        )
    return FileError(f"{who}: {path} cannot be written: {error.strerror}")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
