"""Writes .safetensors files for tests, good ones and others."""

import json

import numpy as np

NAMES = {
    "bool": "BOOL", "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64",
    "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64",
    "float16": "F16", "float32": "F32", "float64": "F64", "complex64": "C64",
}  # fmt: skip


def content(header, data=b"", length=None, padding=0):
    """A file with this header: an object, or its text, or its bytes."""
    if not isinstance(header, (str, bytes)):
        header = json.dumps(header)
    text = (header.encode() if isinstance(header, str) else header) + b" " * padding
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def write(path, arrays, metadata=None, padding=0):
    """A good file of NumPy arrays; bytes beside a shape, (shape, bytes), are bfloat16."""
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, array in arrays.items():
        shape, dtype, added = (
            (array[0], "BF16", array[1])
            if isinstance(array, tuple)
            else (array.shape, NAMES[array.dtype.name], np.ascontiguousarray(array).tobytes())
        )
        offsets = [len(data), len(data) + len(added)]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": offsets}
        data += added
    path.write_bytes(content(header, data, padding=padding))
    return path


def bfloat16(array):
    """(shape, bytes) of numbers that bfloat16 holds."""
    high = np.ascontiguousarray(array, np.float32).view(np.uint32) >> 16
    return array.shape, high.astype(np.uint16).tobytes()
