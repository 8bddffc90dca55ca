#!/usr/bin/env python3
"""Opens .safetensors files that nobody writes on purpose: headers made up, cut short, spoilt in any byte.

    python tools/fuzz_safetensors.py --seconds 60 [--seed 7]
    python tools/fuzz_safetensors.py --seed 7 --only 4711

A file is opened, or refused by a FileError of one line that names it; each of its tensors holds the bytes
that its offsets name, or is refused by a DTypeError. It is a defect when the process ends or hangs, when
another exception comes, and when there are other bytes.
"""

from __future__ import annotations

import json
import random
import struct

from fuzz_harness import files_of, main

_DTYPES = "BOOL U8 I8 I16 U16 F16 BF16 I32 U32 F32 F64 I64 U64 C64 F8_E4M3 F4 f32 float32".split()
_ITEMS = {"U8": 1, "I8": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4}
_SIZES = [0, 1, 2, 3, 7, -1, True, 1.0, 1e400, "2", None, [], 2**31, 2**62, 2**63, 10**30]
_NAMES = [
    "a",
    "b",
    "a",
    "",
    "__metadata__",
    "\ud800",
    "a\x00b",
    "layer.0.weight",
    "x" * 5000,
    "ä:b",
]
_TEXTS = [
    "[" * 100_000, '{"a":' * 50_000, "{} {}", "{", "", "null", "[]", '{"a": NaN}', '{"a": -Infinity}',
    '{"a": ' + "9" * 10_000 + "}", '{"a": 1e999999}', '{"\\ud800\\udfff": {}}', "\ufeff{}", "{}\x00",
]  # fmt: skip


def _member(random_: random.Random, place: int) -> tuple[object, int]:
    """What a header says of a tensor whose data might begin at `place`, and where they would end."""
    dtype = random_.choice(_DTYPES)
    is_plain = random_.random() < 0.7
    shape = [
        random_.choice([0, 1, 2, 3] if is_plain else _SIZES)
        for _ in range(random_.choice([0, 1, 2, 2, 3, 33]))
    ]
    count = 1
    for size in shape:
        count *= size if type(size) is int and 0 <= size < 100 else 1
    end = place + count * _ITEMS.get(dtype, 8)
    offsets = [place, end] if random_.random() < 0.8 else random_.choices(_SIZES, k=2)
    member = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
    for key in list(member):
        if random_.random() < 0.03:
            member[key] = random_.choice([*_SIZES, {}, member])
            if member[key] is member:
                del member[key]
    return (member if random_.random() < 0.97 else random_.choice(_SIZES)), end


def _header(random_: random.Random) -> str:
    if random_.random() < 0.1:
        return random_.choice(_TEXTS)
    place, pairs = 0, []
    for i in range(random_.choice([0, 1, 2, 3, 40])):
        name = f"t{i}" if random_.random() < 0.8 else random_.choice(_NAMES)
        member, place = _member(random_, max(0, place + random_.choice([0, 0, 0, 0, 1, -1])))
        pairs.append(f"{json.dumps(name)}: {json.dumps(member)}")
    if random_.random() < 0.2:
        pairs.append(
            f'"__metadata__": {json.dumps(random_.choice([{"a": "b"}, {"a": 1}, [], ""]))}'
        )
    return "{" + ", ".join(pairs) + "}" + " " * random_.choice([0, 0, 1, 7, 70_000])


def _content(random_: random.Random) -> bytes:
    encoding = random_.choice(["utf-8"] * 8 + ["latin-1", "utf-16"])
    header = _header(random_).encode(encoding, "replace")
    length = random_.choice([len(header)] * 8 + [0, len(header) + 9, 10**8 + 1, 2**63, 2**64 - 1])
    data = random_.randbytes(random_.choice([0, 7, 64, 1000, 5000]))
    content = bytearray(struct.pack("<Q", length) + header + data)
    for _ in range(random_.choice([0, 0, 0, 1, 5])):
        content[random_.randrange(len(content))] = random_.randrange(256)
    return bytes(content[: random_.choice([len(content)] * 9 + [random_.randrange(len(content))])])


def _judge(content: bytes) -> str:
    import cuop

    with open("x.safetensors", "wb") as file:
        file.write(content)

    def is_worded(error: BaseException) -> bool:
        said = str(error)
        said.encode()
        return said.startswith("load: x.safetensors") and "\n" not in said and len(said) < 1000

    try:
        found = cuop.safetensors.open("x.safetensors")
    except cuop.FileError as error:
        return "" if is_worded(error) else f"words: {str(error)[:200]}"
    except BaseException as error:
        return f"refusal: {type(error).__name__} {str(error)[:200]}"
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    if list(header) != list(found):
        return f"values: names {list(found)[:5]}"
    for name, member in header.items():
        begin, end = member["data_offsets"]
        try:
            tensor = found[name]
        except cuop.DTypeError as error:
            if not is_worded(error):
                return f"words: {str(error)[:200]}"
            continue
        if tensor.dtype == "bfloat16":
            kept = tensor.nbytes == end - begin
        else:
            kept = tensor.numpy().tobytes() == content[8 + length + begin : 8 + length + end]
        if not kept or list(tensor.shape) != member["shape"]:
            return f"values: {member}"
    return ""


if __name__ == "__main__":
    main(__doc__.splitlines()[0], files_of(_content, _judge))
