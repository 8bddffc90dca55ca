"""Tensors of .safetensors files, read page by page.

    weights = cuop.safetensors.open("model.safetensors")
    list(weights)                # names
    weights["layer.0.weight"]    # a read-only tensor over the mapped file

The format: 8 bytes with the length of a header (little-endian), the header as JSON, {"name": {"dtype":
"F32", "shape": [..], "data_offsets": [begin, end]}, "__metadata__": {..}}, then the data, which the
offsets count from (https://huggingface.co/docs/safetensors).
"""

import json
import math
import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from cuop import _core
from cuop._core import Tensor
from cuop.errors import DTypeError, FileError
from cuop.mapped import HeaderError, bytes_of, open_ordinary

__all__ = ["SafeTensors", "TensorInfo", "open"]

_LONGEST = 100_000_000  # bytes of a header, as other readers have it
_MOST_AXES = 32
_LARGEST = (1 << 63) - 1
_METADATA = "__metadata__"
_DTYPES = {
    "BOOL": "bool",
    "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64",
    "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
    "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "C64": "complex64",
}  # fmt: skip


@dataclass(frozen=True)
class TensorInfo:
    """What the header says of a tensor; bytes [begin, end) of the data. dtype as in the file: F32."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


class SafeTensors(Mapping[str, Tensor]):
    """Names of tensors -> read-only tensors over the file; made by `open`.

    `metadata` is the file's, `info` what its header says of each tensor. Tensors are made when they
    are asked for; elements that do not begin at a multiple of their size are copied.
    """

    def __init__(self, path, metadata: dict[str, str], info: dict[str, TensorInfo], data):
        self.path = path
        self.metadata = metadata
        self.info = info
        self._data = data

    def __getitem__(self, name: str) -> Tensor:
        """The tensor; KeyError when there is none, DTypeError for one of numbers that cuop has not."""
        info = self.info[name]
        if info.dtype not in _DTYPES:
            raise DTypeError(
                f"load: {self.path}: {_shortened(name)} holds {_shortened(info.dtype)}, allowed are "
                f"{', '.join(_DTYPES)}"
            )
        content = self._data[info.begin : info.end]
        return _core._numbers_of(content, _DTYPES[info.dtype], info.shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self.info)

    def __len__(self) -> int:
        return len(self.info)

    def __repr__(self) -> str:
        return f"SafeTensors({str(self.path)!r}, {len(self)} tensors)"


def open(path: str | os.PathLike) -> SafeTensors:
    """The tensors of a .safetensors file, which is checked as a whole but not read.

    Raises FileError when it is missing, no such file or truncated, when tensors overlap or have other
    bytes than their shape and dtype need; calls that use a tensor do when the file has been cut off
    since.
    """
    with open_ordinary(path) as (file, path):
        text, offset = _header(file)
        metadata, info = _contents(text)
        present = os.fstat(file.fileno()).st_size - offset
        needed = max((each.end for each in info.values()), default=0)
        if present < needed:
            raise FileError(
                f"load: {path} is truncated: its tensors need {needed} bytes of data, the file has "
                f"{present}"
            )
        data = bytes_of(file, path, offset, needed) if needed else np.empty(0, np.uint8)
        return SafeTensors(path, metadata, info, data)


def _header(file: BinaryIO) -> tuple[str, int]:
    """The text of the header, and where the data begin."""
    prefix = file.read(8)
    if len(prefix) != 8:
        raise HeaderError("is not a .safetensors file: it is shorter than 8 bytes")
    (length,) = struct.unpack("<Q", prefix)
    if length > _LONGEST:
        raise HeaderError(
            f"is not a .safetensors file: it announces a header of {length} bytes, allowed are at most "
            f"{_LONGEST}"
        )
    content = file.read(length)
    if len(content) != length:
        raise HeaderError("is not a .safetensors file: its header is cut short")
    try:
        return content.decode("utf-8"), 8 + length
    except UnicodeDecodeError as error:
        raise HeaderError("is not a .safetensors file: its header is not UTF-8") from error


def _contents(text: str) -> tuple[dict[str, str], dict[str, TensorInfo]]:
    if not text.startswith("{"):
        raise HeaderError("is not a .safetensors file: its header is no JSON object")
    try:
        members = json.loads(text, object_pairs_hook=_without_twins, parse_constant=_no_constant)
    except HeaderError:
        raise
    except (ValueError, RecursionError) as error:
        reason = str(error).partition("\n")[0][:100]
        raise HeaderError(
            f"is not a .safetensors file: its header cannot be read as JSON: {reason}"
        ) from error
    metadata = members.pop(_METADATA, {})
    if not _is_metadata(metadata):
        raise HeaderError(f"is not a .safetensors file: its {_METADATA} is no object of texts")
    info = {name: _info(name, member) for name, member in members.items()}
    _check_apart(info)
    return metadata, info


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        twin = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise HeaderError(f"is not a .safetensors file: its header has {_shortened(twin)} twice")
    return members


def _no_constant(text: str) -> None:
    raise HeaderError(f"is not a .safetensors file: its header has {text}")


def _is_metadata(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _info(name: str, member: Any) -> TensorInfo:
    def bad(what: str) -> HeaderError:
        return HeaderError(f"is not a .safetensors file: {_shortened(name)} {what}")

    if not isinstance(member, dict) or set(member) != {"dtype", "shape", "data_offsets"}:
        raise bad("has not dtype, shape and data_offsets alone")
    dtype, shape, offsets = member["dtype"], member["shape"], member["data_offsets"]
    if not isinstance(dtype, str):
        raise bad("has a dtype that is no text")
    if not _are_sizes(shape) or len(shape) > _MOST_AXES:
        raise bad(f"has the shape {_shortened(shape)}; needed are at most {_MOST_AXES} sizes")
    if not _are_sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise bad(f"has the data_offsets {_shortened(offsets)}; needed are begin <= end")
    begin, end = offsets
    if dtype in _DTYPES:
        item = _core.dtype(_DTYPES[dtype]).itemsize
        # As if no axis were empty: the strides of such an axis's neighbours must fit too.
        if math.prod(max(size, 1) for size in shape) * item > _LARGEST:
            raise bad(f"announces {_shortened(shape)} {dtype}, which is more than any memory")
        if math.prod(shape) * item != end - begin:
            raise bad(
                f"has {end - begin} bytes of data, {_shortened(shape)} {dtype} needs "
                f"{math.prod(shape) * item}"
            )
    return TensorInfo(dtype, tuple(shape), begin, end)


def _are_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n <= _LARGEST for n in value)


def _check_apart(info: dict[str, TensorInfo]) -> None:
    """No byte belongs to two tensors, which is how a small file would pretend to hold much."""
    last_end, last_name = 0, ""
    placed = ((each.begin, each.end, name) for name, each in info.items() if each.end > each.begin)
    for begin, end, name in sorted(placed):
        if begin < last_end:
            raise HeaderError(
                f"is not a .safetensors file: {_shortened(last_name)} and {_shortened(name)} overlap"
            )
        last_end, last_name = end, name


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "..."
