"""The header of a .npy file: written, and read so that no content can do more than be refused.

NumPy's own reader evaluates the header as Python; a file may then end in errors of the tokenizer, the
parser or the allocator. What the headers of plain numbers look like is a small language:
https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

import io
import math
import re
import struct
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from cuop.mapped import HeaderError

_MAGIC = b"\x93NUMPY"
_LENGTHS = {(1, 0): struct.Struct("<H"), (2, 0): struct.Struct("<I")}
_LONGEST = 1 << 16  # of the header of an array of numbers, by far
_MOST_AXES = 32
_LARGEST = (1 << 63) - 1

# Nothing is tried twice (*+), so that the time is proportional to the length.
_TEXT = r"'[^'\\\n]*+'|\"[^\"\\\n]*+\""
_SHAPE = r"\((?:\s*+-?\d{1,40}+L?+\s*+,)*+(?:\s*+-?\d{1,40}+L?+)?+\s*+\)"
_ITEM = re.compile(
    rf"\s*+(?P<key>{_TEXT})\s*+:\s*+(?:(?P<text>{_TEXT})|(?P<truth>True|False)|(?P<shape>{_SHAPE}))"
    r"\s*+(?P<end>,?+\s*+\}|,)"
)
_NUMBERS = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8), "c": (8, 16)}


@dataclass(frozen=True)
class Header:
    """What is in the file: numbers of one dtype in C order, from byte `offset` on."""

    shape: tuple[int, ...]
    dtype: np.dtype
    offset: int

    @property
    def nbytes(self) -> int:
        """How many bytes of data there must be."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(file: BinaryIO) -> Header:
    """The header at the beginning of the file; HeaderError when it is none that can be used."""
    fields = _fields(_text(file))
    if set(fields) != {"descr", "fortran_order", "shape"}:
        raise HeaderError(f"is not a .npy file: its header has {', '.join(sorted(fields))}")
    descr, is_fortran, shape = fields["descr"], fields["fortran_order"], fields["shape"]
    if not (type(descr) is str and type(is_fortran) is bool and type(shape) is tuple):
        raise HeaderError("is not a .npy file: its header has values of the wrong kind")
    dtype = _dtype(descr)
    if is_fortran and len(shape) > 1:
        raise HeaderError(
            "is Fortran-ordered, allowed is C order; convert it with "
            "np.save(path, np.ascontiguousarray(np.load(path)))"
        )
    if len(shape) > _MOST_AXES:
        raise HeaderError(f"has {len(shape)} dimensions, allowed are at most {_MOST_AXES}")
    # The bytes as if no axis were empty: the strides of such an axis's neighbours must fit too.
    if math.prod(max(size, 1) for size in shape) * dtype.itemsize > _LARGEST:
        raise HeaderError(f"announces {_shortened(shape)} {dtype}, which is more than any memory")
    return Header(shape, dtype, file.tell())


def write_header(file: BinaryIO, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Writes the header of so many numbers in C order."""
    descr = np.lib.format.dtype_to_descr(dtype)
    header = {"descr": descr, "fortran_order": False, "shape": tuple(shape)}
    np.lib.format.write_array_header_1_0(file, header)


def header_bytes(shape: tuple[int, ...], dtype: np.dtype) -> int:
    """How many bytes `write_header` writes."""
    header = io.BytesIO()
    write_header(header, shape, dtype)
    return header.tell()


def _text(file: BinaryIO) -> str:
    magic = file.read(8)
    if magic[:6] != _MAGIC or len(magic) != 8:
        raise HeaderError("is not a .npy file: it does not begin as one")
    version = (magic[6], magic[7])
    if version not in _LENGTHS:
        raise HeaderError(f"has .npy version {version[0]}.{version[1]}, allowed are 1.0 and 2.0")
    layout = _LENGTHS[version]
    prefix = file.read(layout.size)
    if len(prefix) != layout.size:
        raise HeaderError("is not a .npy file: its header is cut short")
    (length,) = layout.unpack(prefix)
    if length > _LONGEST:
        raise HeaderError(f"has a header of {length} bytes, allowed are at most {_LONGEST}")
    text = file.read(length)
    if len(text) != length:
        raise HeaderError("is not a .npy file: its header is cut short")
    return text.decode("latin-1")


def _fields(text: str) -> dict[str, str | bool | tuple[int, ...]]:
    if re.match(r"\s*+\{\s*+'descr'\s*+:\s*+\[", text):
        raise HeaderError("holds records, allowed are bool, integer, float and complex numbers")
    if (place := text.find("{")) < 0 or text[:place].strip():
        raise HeaderError("is not a .npy file: its header is no dict")
    place += 1
    fields: dict[str, str | bool | tuple[int, ...]] = {}
    while item := _ITEM.match(text, place):
        value = item["text"] or item["truth"] or item["shape"]
        if item["text"]:
            fields[item["key"][1:-1]] = value[1:-1]
        elif item["truth"]:
            fields[item["key"][1:-1]] = value == "True"
        else:
            fields[item["key"][1:-1]] = _shape(value)
        place = item.end()
        if "}" in item["end"]:
            break
    else:
        raise HeaderError(f"is not a .npy file: its header has {text[place : place + 40]!r}")
    if text[place:].strip():
        raise HeaderError("is not a .npy file: its header has more than one dict")
    return fields


def _shape(text: str) -> tuple[int, ...]:
    shape = tuple(int(size) for size in re.findall(r"-?\d+", text))
    if len(shape) == 1 and "," not in text:
        raise HeaderError(f"is not a .npy file: its shape is {text}")
    if any(not 0 <= size <= _LARGEST for size in shape):
        raise HeaderError(f"is not a .npy file: its shape is {_shortened(shape)}")
    return shape


def _dtype(descr: str) -> np.dtype:
    found = re.fullmatch(r"([<>|=]?)([biufc])(\d{1,2})", descr)
    if found and int(found[3]) in _NUMBERS[found[2]]:
        return np.dtype(descr)
    name = descr if len(descr) <= 40 else descr[:40] + "..."
    try:
        name = str(np.dtype(descr)) if re.fullmatch(r"[<>|=]?[a-zA-Z]\d{0,4}", descr) else name
    except (TypeError, ValueError):
        pass  # no dtype at all
    raise HeaderError(f"holds {name}, allowed are bool, integer, float and complex numbers")


def _shortened(shape: tuple[int, ...]) -> str:
    text = str(shape)
    return text if len(text) <= 100 else text[:100] + "..."
