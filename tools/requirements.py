#!/usr/bin/env python3
"""Prints the Python packages that pyproject.toml names, one a line: what building needs, what the
package needs and every optional group. tools/setup.sh fills .venv from it."""

import tomllib
from pathlib import Path


def requirements(pyproject: Path) -> list[str]:
    with pyproject.open("rb") as file:
        settings = tomllib.load(file)
    project = settings["project"]
    names = {*settings["build-system"]["requires"], *project["dependencies"]}
    for group in project["optional-dependencies"].values():
        names.update(group)
    return sorted(names)


if __name__ == "__main__":
    root = Path(__file__).resolve().parent.parent
    print("\n".join(requirements(root / "pyproject.toml")))
