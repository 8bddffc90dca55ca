"""Takes out of generated stubs the overload of each function that only words its errors.

python cmake/tidy_stubs.py build/release/python/cuop/_core/*.pyi
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

# A form without its docstring, and the overload "(...)" behind it, which has it where there is one.
_FORM_AND_MISFITS = re.compile(
    r"(\n *def (\w+)\(.*): \.\.\.\n\n *@overload\n(?: *@staticmethod\n)? *def \2\(\.\.\.\):"
)


def without_misfits(text):
    """The stub's text with the forms that calls may have; one form alone is no overload."""
    lines = _FORM_AND_MISFITS.sub(r"\1:", text).split("\n")
    overloads, scope = defaultdict(list), ""
    for i, line in enumerate(lines):
        if line.startswith("class "):
            scope = line
        if line.strip() == "@overload":
            name = re.search(r"def (\w+)", "\n".join(lines[i : i + 3])).group(1)
            overloads[scope, line, name].append(i)
    alone = {places[0] for places in overloads.values() if len(places) == 1}
    tidy = "\n".join(line for i, line in enumerate(lines) if i not in alone)
    return (
        tidy
        if "@overload" in tidy
        else re.sub(r"from typing import overload\n+|, overload", "", tidy)
    )


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(without_misfits(path.read_text()))
