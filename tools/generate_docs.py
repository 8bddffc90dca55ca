#!/usr/bin/env python3
"""Writes the pages of docs/ that are generated from the code; --check only compares.

Needs the built package: `make docs`, or PYTHONPATH at a build's python folder.
"""

import sys
from pathlib import Path

import cuop

ROOT = Path(__file__).resolve().parent.parent
NOTE = "<!-- Written by tools/generate_docs.py; `make docs` writes it anew. -->"


def environment_page() -> str:
    """The table of environment variables, from the one struct that reads them."""
    lines = [
        "# Environment variables",
        "",
        NOTE,
        "",
        "Read once, on first use. A value that cannot be read is an `ExecutionError`;",
        "`cuop info` shows what is in force.",
        "",
        "| variable | also read as | default | meaning |",
        "|---|---|---|---|",
    ]
    for row in cuop.env_table():
        alias = f"`{row['alias']}`" if row["alias"] else ""
        default = f"`{row['default']}`" if row["default"] else ""
        lines.append(f"| `{row['name']}` | {alias} | {default} | {row['what']} |")
    return "\n".join(lines) + "\n"


def error_bound(ulps: float) -> str:
    """A bound in words."""
    return "exact" if ulps == 0 else f"{ulps:.2f}"


def functions_page() -> str:
    """The table of elementwise functions, with the measured errors of those of one argument."""
    lines = [
        "# Elementwise functions",
        "",
        NOTE,
        "",
        "Each is a function of `cuop`. The last two columns say how far a result may be from the true one,",
        "in units in the last place of the result: 0.50 is correct rounding. They are the largest errors",
        "found on a CPU, of all instruction sets, and some 5 % more: among bit patterns of all kinds, the",
        "neighbourhoods of the zeros of sin and cos and the ends of every range, beside 113-digit",
        "arithmetic (`tests/jit/accuracy_test.cpp`). On a GPU the bounds are 1 in float32 and 1.5 in",
        "float64 (`tests/gpu/accuracy_test.cpp`).",
        "float16 and bfloat16 compute in float32 and round once. exp, log, erf, tanh and the other monotone functions are",
        "monotone over neighbouring numbers, but for about one pair in ten million of erfc of float64 where",
        "operations are not fused. What is computed of complex numbers is a few units of the larger part away; functions of",
        "more arguments state nothing here unless IEEE 754 does.",
        "",
        "| function | value | float32 | float64 |",
        "|---|---|---|---|",
    ]
    for row in sorted(cuop.elementwise_table(), key=lambda row: row["name"]):
        arguments = ", ".join(row["parameters"])
        is_stated = len(row["parameters"]) == 1 and "float64" in row["dtypes"]
        bounds = [error_bound(ulps) if is_stated else "" for ulps in row["ulps"]]
        lines.append(f"| `{row['name']}({arguments})` | {row['doc']} | {bounds[0]} | {bounds[1]} |")
    return "\n".join(lines) + "\n"


PAGES = {"docs/environment.md": environment_page, "docs/functions.md": functions_page}


def outdated(root: Path = ROOT) -> list[str]:
    """The pages that are not what the code says."""
    return [
        name
        for name, page in PAGES.items()
        if not (root / name).is_file() or (root / name).read_text("utf-8") != page()
    ]


def main() -> int:
    names = outdated()
    if "--check" in sys.argv[1:]:
        for name in names:
            print(f"{name} is not what the code says; make docs writes it")
        return 1 if names else 0
    for name in names:
        (ROOT / name).write_text(PAGES[name](), "utf-8")
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
