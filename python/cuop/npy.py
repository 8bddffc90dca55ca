"""Tensors from .npy files without reading them whole, and back."""

import os
import stat
from collections.abc import Callable

import numpy as np

from cuop import _core
from cuop._arguments import check_callable, file_path
from cuop._core import Tensor, asarray
from cuop.errors import DTypeError, ExecutionError, FileError
from cuop.files import replace_file
from cuop.npy_header import HeaderError, read_header

__all__ = ["check_whole", "load", "open_npy", "save"]

_CHUNK_BYTES = 16 << 20
_MAPPED_BYTES = 1 << 20  # smaller files are read


def open_npy(path: str | os.PathLike) -> np.ndarray:
    """The elements of a .npy file, read-only; a large file is mapped into memory.

    Raises FileError when the file is missing, unreadable, not .npy, truncated, or holds
    Fortran-ordered, object or structured data.
    """
    path = file_path(path, "load")
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise FileError(f"load: {path} is no ordinary file, which is needed to map it")
        with open(path, "rb") as file:
            header = read_header(file)
            present = os.fstat(file.fileno()).st_size - header.offset
            if present < header.nbytes:
                raise FileError(
                    f"load: {path} is truncated: {header.shape} {header.dtype} needs "
                    f"{header.nbytes} bytes of data, the file has {present}"
                )
            if header.nbytes == 0:
                return np.empty(header.shape, header.dtype)
            content = _bytes_of(file, path, header.offset, header.nbytes)
            return content.view(header.dtype).reshape(header.shape)
    except HeaderError as error:
        raise FileError(f"load: {path} {error}") from error
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"load: {path} cannot be read: {error.strerror}") from error


def load(path: str | os.PathLike) -> Tensor:
    """The contents of a .npy file as a read-only tensor over the mapped file.

    Pages are read when they are first used (a small file at once). Raises FileError as `open_npy`,
    as do calls that use the tensor when another program has cut off the file since.
    """
    return asarray(open_npy(path))


def save(
    path: str | os.PathLike, array, on_progress: Callable[[float], None] | None = None
) -> None:
    """Write a tensor or array as .npy: under its name it is complete or it is not there.

    `on_progress` is called with the written fraction. Raises FileError when the path cannot be
    written or the disk is full, DTypeError for an array that is not of numbers; a file that was
    there before is then still there.
    """
    if on_progress is not None:
        check_callable(on_progress, "save", "on_progress")
    data = np.asarray(array)
    if data.dtype.kind not in "biufc":
        raise DTypeError(
            f"save: array: dtype {data.dtype} is not supported, allowed are bool, integer, float and "
            "complex numbers"
        )
    with replace_file(path, "save") as file:
        header = np.lib.format.header_data_from_array_1_0(data)
        header["fortran_order"] = False
        np.lib.format.write_array_header_1_0(file, header)
        _write_chunks(file, np.ascontiguousarray(data), on_progress or (lambda fraction: None))


def check_whole(array: np.ndarray, path: str | os.PathLike) -> None:
    """Raise FileError when the file of an array of `open_npy` was cut off since it was opened."""
    if array.size and _core._cut_off_file(array.__array_interface__["data"][0]):
        raise FileError(f"load: {path} was cut off by another program while it was being read")


def _bytes_of(file, path: str | os.PathLike, offset: int, size: int) -> np.ndarray:
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


def _write_chunks(file, data: np.ndarray, on_progress: Callable[[float], None]) -> None:
    view = memoryview(data.reshape(-1).view(np.uint8)) if data.size else memoryview(b"")
    for begin in range(0, len(view), _CHUNK_BYTES):
        file.write(view[begin : begin + _CHUNK_BYTES])
        on_progress(min(1.0, (begin + _CHUNK_BYTES) / len(view)))
    on_progress(1.0)
