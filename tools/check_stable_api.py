#!/usr/bin/env python3
"""Checks that python/src uses Python's stable interface alone.

Extensions of Python 3.12 and later are built against it (Py_LIMITED_API), where other functions are
not declared; those of earlier versions, as in CI, are not, and would compile with them.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Of the stable interface since 3.12; headers of an earlier version do not declare them in it.
SINCE_3_12 = {"PyObject_Vectorcall", "PyObject_VectorcallMethod", "PyVectorcall_Call"}
# The names by which C knows Python: PyObject_Call, Py_DECREF, _PyLong_AsInt.
NAME = re.compile(r"\b_?Py(?:[A-Z]\w*)?_\w+")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def declared() -> set[str]:
    """All names that Python.h gives a program that keeps to the stable interface."""
    command = ["c++", "-x", "c++", "-E", "-dD", "-DPy_LIMITED_API=0x030C0000"]
    command += [f"-I{sysconfig.get_paths()['include']}", "-"]
    text = "#include <Python.h>\n#include <structmember.h>\n"
    made = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    # Of a macro its own name: others may stand in it that are not there.
    lines = [re.sub(r"^(#define \S+).*", r"\1", line) for line in made.stdout.splitlines()]
    return set(NAME.findall("\n".join(lines)))


def used(folder: Path) -> dict[str, str]:
    """Each name in the folder's sources, with the first place where it stands."""
    places: dict[str, str] = {}
    for path in sorted([*folder.glob("*.cpp"), *folder.glob("*.h")]):
        text = COMMENT.sub(lambda gone: "\n" * gone[0].count("\n"), path.read_text("utf-8"))
        for number, line in enumerate(text.splitlines(), 1):
            for name in NAME.findall(line):
                places.setdefault(name, f"{path.name}:{number}")
    return places


def main() -> int:
    """Print what is not in it."""
    known = declared() | SINCE_3_12
    places = used(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "python" / "src")
    wrong = {name: place for name, place in places.items() if name not in known}
    for name, place in wrong.items():
        print(f"{place}: {name} is not in Python's stable interface")
    print(f"check_stable_api: {len(places)} names, {len(wrong)} findings")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
