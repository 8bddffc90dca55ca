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


PAGES = {"docs/environment.md": environment_page}


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
