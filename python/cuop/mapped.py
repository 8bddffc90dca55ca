"""Files of arrays that are read where the kernel maps them, and what can be wrong with any of them."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from cuop import _core
from cuop._arguments import file_path
from cuop.errors import ExecutionError, FileError

_MAPPED_BYTES = 1 << 20  # smaller files are read


class HeaderError(ValueError):
    """What is wrong with a header, or with what it announces; the end of a sentence."""


@contextmanager
def open_ordinary(path: str | os.PathLike) -> Iterator[tuple[BinaryIO, Path]]:
    """An ordinary file to read from, and its path.

    FileError, begun with `load`, when it is none or cannot be read, and for a HeaderError within.
    """
    path = file_path(path, "load")
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise FileError(f"load: {path} is no ordinary file, which is needed to map it")
        with open(path, "rb") as file:
            yield file, path
    except HeaderError as error:
        raise FileError(f"load: {path} {error}") from error
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"load: {path} cannot be read: {error.strerror}") from error


def bytes_of(file: BinaryIO, path: Path, offset: int, size: int) -> np.ndarray:
    """So many bytes of an open file, read-only: in memory, or as the file's pages."""
    if size >= _MAPPED_BYTES:
        try:
            return np.asarray(_core._map_file(file.fileno(), offset, size, str(path)))
        except ExecutionError as error:
            raise FileError(f"load: {path} cannot be read: {error}") from error
    file.seek(offset)
    content = file.read(size)
    if len(content) < size:
        raise FileError(f"load: {path} was cut off by another program while it was being read")
    return np.frombuffer(content, np.uint8)


def check_whole(array, path: str | os.PathLike) -> None:
    """Raise FileError when the file of a mapped array or tensor was cut off since it was opened."""
    if not array.size:
        return
    is_array = isinstance(array, np.ndarray)
    address = array.__array_interface__["data"][0] if is_array else array.data_ptr()
    if _core._cut_off_file(address):
        raise FileError(f"load: {path} was cut off by another program while it was being read")
