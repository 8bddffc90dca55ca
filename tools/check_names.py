#!/usr/bin/env python3
"""Checks that a type or a constant has one definition: one name in a namespace, one meaning.

Two classes of one qualified name in two files of one library are against C++'s rule even where no
file includes both: the linker keeps one of their inline functions and tables for both. What stands
in an unnamed namespace is a source's own and does not count, nor does what is only declared.

Prints one line a name that stands twice, as file:line: what; exit code 1 when there is any.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from check_layers import HOUSE, Finding, report

FOLDERS = ("src", "python/src")
ENDINGS = {".h", ".cuh", ".cpp"}

# What a GPU's compiler has and what the host's has instead: never in one program.
EITHER = {"src/cuop/jit/kernels/platform.cuh", "src/cuop/jit/kernels/platform_host.h"}

OPENS = re.compile(r"^(?:inline )?namespace ?([\w:]*) ?\{")
CLOSES = re.compile(r"^\}  // namespace")
TYPE = re.compile(
    r"^(?:enum class|enum|class|struct|union) (?:alignas\(.*?\) )?(\w+)(?![\w<:*&(])(?:.*\{|.*[^;]$|$)"
)
CONSTANT = re.compile(r"^inline constexpr [\w:<>*, ]+? (\w+)(?:\[\w*\])? ?[={]")


def definitions(text: str) -> Iterator[tuple[str, int]]:
    """Qualified names of types and constants that are defined in named namespaces, with lines."""
    spaces: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if match := OPENS.match(line):
            spaces.append(match[1])
        elif CLOSES.match(line) and spaces:
            spaces.pop()
        elif "" not in spaces and (match := TYPE.match(line) or CONSTANT.match(line)):
            yield "::".join([*spaces, match[1]]), number


def check_tree(root: Path) -> list[Finding]:
    """A finding for each name with definitions in two files."""
    places: dict[str, list[tuple[str, int]]] = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in ENDINGS:
                name = path.relative_to(root).as_posix()
                for defined, number in definitions(path.read_text("utf-8")):
                    places.setdefault(defined, []).append((name, number))
    findings = []
    for defined, found in places.items():
        files = {name for name, _ in found}
        if len(files) > 1 and not files <= EITHER:
            (first, line), *others = found
            elsewhere = ", ".join(f"{name}:{number}" for name, number in others)
            findings.append(Finding(first, line, f"{defined} is defined in {elsewhere} as well"))
    return findings


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else HOUSE
    return report("check_names: " + " and ".join(FOLDERS), check_tree(root))


if __name__ == "__main__":
    sys.exit(main())
