"""Tensors from .npy files without reading them whole, and back."""

import os
from collections.abc import Callable

import numpy as np

from cuop._arguments import check_callable
from cuop._core import Tensor, asarray
from cuop.errors import DTypeError, FileError
from cuop.files import replace_file
from cuop.mapped import bytes_of, check_whole, open_ordinary
from cuop.npy_header import header_bytes, read_header, write_header

__all__ = ["check_whole", "load", "open_npy", "save"]

_CHUNK_BYTES = 16 << 20


def open_npy(path: str | os.PathLike) -> np.ndarray:
    """The elements of a .npy file, read-only; a large file is mapped into memory.

    Raises FileError when the file is missing, unreadable, not .npy, truncated, or holds
    Fortran-ordered, object or structured data.
    """
    with open_ordinary(path) as (file, path):
        header = read_header(file)
        present = os.fstat(file.fileno()).st_size - header.offset
        if present < header.nbytes:
            raise FileError(
                f"load: {path} is truncated: {header.shape} {header.dtype} needs "
                f"{header.nbytes} bytes of data, the file has {present}"
            )
        if header.nbytes == 0:
            return np.empty(header.shape, header.dtype)
        content = bytes_of(file, path, header.offset, header.nbytes)
        return content.view(header.dtype).reshape(header.shape)


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
    try:
        data = np.asarray(array)
    except (DTypeError, ValueError) as error:  # of a dtype or an interface that NumPy has not
        raise DTypeError(f"save: array: {str(error).removeprefix('to_numpy: ')}") from error
    if data.dtype.kind not in "biufc":
        raise DTypeError(
            f"save: array: dtype {data.dtype} is not supported, allowed are bool, integer, float and "
            "complex numbers"
        )
    size = header_bytes(data.shape, data.dtype) + data.nbytes
    progress = _Progress(on_progress)
    try:
        with replace_file(path, "save", size) as file:
            write_header(file, data.shape, data.dtype)
            _write_chunks(file, np.ascontiguousarray(data), progress)
    except FileError:
        if progress.raised is None:
            raise
        raise progress.raised from progress.raised.__cause__


class _Progress:
    """A caller's function that is told of progress, and the OSError that it raised: not the file's."""

    def __init__(self, function: Callable[[float], None] | None) -> None:
        self._function = function
        self.raised: OSError | None = None

    def __call__(self, fraction: float) -> None:
        if self._function is None:
            return
        try:
            self._function(fraction)
        except OSError as error:
            self.raised = error
            raise


def _write_chunks(file, data: np.ndarray, on_progress: Callable[[float], None]) -> None:
    view = memoryview(data.reshape(-1).view(np.uint8)) if data.size else memoryview(b"")
    for begin in range(0, len(view), _CHUNK_BYTES):
        file.write(view[begin : begin + _CHUNK_BYTES])
        on_progress(min(1.0, (begin + _CHUNK_BYTES) / len(view)))
    on_progress(1.0)
