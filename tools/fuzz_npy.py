#!/usr/bin/env python3
"""Loads .npy files that nobody writes on purpose: headers made up, cut short, spoilt in any byte.

    python tools/fuzz_npy.py --seconds 60 [--seed 7]
    python tools/fuzz_npy.py --seed 7 --only 4711

A file is loaded as NumPy loads it, or refused by a FileError of one line that names it. It is a defect
when the process ends or hangs, when another exception comes, and when the numbers are not NumPy's.
"""

from __future__ import annotations

import random
import struct
import warnings

from fuzz_harness import files_of, main

_DESCRIPTIONS = """<f8 <f4 <f2 <f16 >f8 >i4 <i8 |i1 |u1 <u8 |b1 <c8 <c16 <c32 |O |S3 <U4 <M8[s] |V7 f8 =f4 <i3
<f99999999999 x <x9 ?? float64 >>f8 |f8 <b1""".split()
_SIZES = """0 1 2 3 7 8 -1 -8 007 2L 1.0 True None 2**3 9223372036854775807 9223372036854775808 4611686018427387904
1000000000000000000000000000000 1e3 0x10 'a' [] () nan""".split()
_KEYS = [
    "'descr'",
    "'fortran_order'",
    "'shape'",
    "'extra'",
    "descr",
    "b'descr'",
    "''",
    "1",
    "'\\x00'",
]
_VALUES = [
    "[('a', '<f8')]", "[('a', '<f8', (2,)), ('b', '|O')]", "{}", "[]", "None", "1", "__import__('os')",
    "(" * 200, "[" * 9000, "-" * 5000, "lambda: 0", "'" * 3, "f'{1}'", "{'descr': '<f8'}", "\\", "#",
]  # fmt: skip
_TRUTHS = ["True", "False", "False", "False", "0", "1", "None", "true"]


def _shape(random_: random.Random) -> str:
    count = random_.choice([0, 1, 1, 2, 2, 3, 8, 33, 70, 2000])
    plain = random_.random() < 0.6
    sizes = [random_.choice("0123" if plain else _SIZES) for _ in range(count)]
    end = (
        random_.choice(["", ",", ",", ",,"]) if count != 1 else random_.choice([",", ",", ",", ""])
    )
    return f"({', '.join(sizes)}{end})"


def _header(random_: random.Random) -> str:
    items = [
        ("'descr'", f"'{random_.choice(_DESCRIPTIONS)}'"),
        ("'fortran_order'", random_.choice(_TRUTHS)),
        ("'shape'", _shape(random_)),
    ]
    if random_.random() < 0.3:
        random_.shuffle(items)
    for _ in range(random_.choice([0, 0, 0, 1, 2])):
        place = random_.randrange(len(items) + 1)
        key, value = random_.choice(_KEYS), random_.choice(_VALUES + _TRUTHS)
        items[place : place + random_.choice([0, 1])] = [(key, value)]
    text = (
        "{"
        + ", ".join(f"{key}: {value}" for key, value in items)
        + random_.choice([", }", "}", ""])
    )
    return text + " " * random_.choice([0, 0, 1, 60, 70000])


def _content(random_: random.Random) -> bytes:
    version = random_.choice([(1, 0)] * 6 + [(2, 0)] * 3 + [(3, 0), (0, 0), (9, 9)])
    encoding = random_.choice(["latin-1", "latin-1", "utf-8", "utf-16"])
    header = _header(random_).encode(encoding, "replace")
    length = random_.choice([len(header)] * 8 + [0, len(header) + 100, 2**16 - 1, 2**31, 2**32 - 1])
    if version == (1, 0):
        prefix = struct.pack("<H", length % 2**16)
    else:
        prefix = struct.pack("<I", length)
    data = random_.randbytes(random_.choice([0, 1, 8, 64, 64, 64, 1000]))
    content = bytearray(b"\x93NUMPY" + bytes(version) + prefix + header + data)
    for _ in range(random_.choice([0, 0, 0, 1, 5])):
        content[random_.randrange(len(content))] = random_.randrange(256)
    return bytes(content[: random_.choice([len(content)] * 9 + [random_.randrange(len(content))])])


def _judge(content: bytes) -> str:
    import numpy as np

    import cuop

    with open("x.npy", "wb") as file:
        file.write(content)
    try:
        loaded = cuop.load("x.npy")
    except cuop.FileError as error:
        said = str(error)
        is_worded = said.startswith("load: x.npy ") and "\n" not in said and len(said) < 1000
        return "" if is_worded else f"words: {said[:200]}"
    except BaseException as error:
        return f"refusal: {type(error).__name__} {str(error)[:200]}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that Python 2 wrote
            expected = np.load("x.npy", allow_pickle=False)
    except Exception:
        return ""  # what NumPy is more careful about
    same = loaded.shape == expected.shape and loaded.numpy().tobytes() == (
        expected.astype(expected.dtype.newbyteorder("=")).tobytes()
    )
    return "" if same else f"values: {expected.dtype} {expected.shape}"


if __name__ == "__main__":
    main(__doc__.splitlines()[0], files_of(_content, _judge))
