"""Which lines get a mistake: a choice that a seed fixes and that edits elsewhere hardly move."""

from __future__ import annotations

import ast
import hashlib
import random
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tools.mutants import kinds

# What part of the mistakes each area gets, and its files.
AREAS = {
    "memory": (3, "src/cuop/memory/**/*.cpp"),
    "jit": (4, "src/cuop/jit/**/*.cpp"),
    "tune": (2, "src/cuop/tune/**/*.cpp"),
    "ops": (6, "src/cuop/ops/**/*.cpp"),
    "dist": (5, "src/cuop/dist/**/*.cpp"),
    "python": (3, "python/*/**/*.py"),
}
# Files that run on GPUs alone, and those whose output only a person sees.
LEFT_OUT = re.compile(
    r"cuda|nvrtc|pinned|gemm_choice|conv_choice|warm\.cpp|_isa\.cpp|mpi_module|/bench/|/demo/|/cli/|python/(tests|src)/|"
    r"__init__\.py|snapshot_page|typing\.py"
)
# Lines whose loss nobody is promised to notice: log texts and memory reserved ahead.
UNPROMISED = re.compile(r"^\s*log\(|\.reserve\(")


@dataclass
class Mutant:
    number: int
    area: str
    file: str
    line: int
    original: str
    planted: str
    what: str
    id: str = ""
    outcome: str = ""
    seen_by: str = ""
    seconds: float = 0


def _python_places(text: str) -> list[int]:
    inside: set[int] = set()
    strings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        lines = range(getattr(node, "lineno", 1) - 1, getattr(node, "end_lineno", 0) or 0)
        if isinstance(node, ast.FunctionDef) and node.body:
            inside.update(range(node.body[0].lineno - 1, node.end_lineno or 0))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(lines) > 1:
            strings.update(lines)
    return sorted(inside - strings)


def places(file: Path) -> list[int]:
    """Indices of the lines that hold code which runs: no declarations, comments, long strings."""
    text = file.read_text()
    lines = text.splitlines()
    if file.suffix == ".py":
        return [i for i in _python_places(text) if not UNPROMISED.search(lines[i])]
    return [
        i
        for i, line in enumerate(lines)
        if line.startswith("  ")
        and line.strip()
        and not re.match(r"\s*(//|#|static_assert|constexpr|static constexpr|case |R\"|\")", line)
        and "constexpr" not in line
        and not line.rstrip().endswith(",")
        and not UNPROMISED.search(line)
    ]


def _spots(files: list[Path], root: Path, seed: int) -> list[tuple[str, Path, int]]:
    """(key, file, line) of all places, in an order that depends on the seed and each line's text."""
    spots = []
    for file in files:
        name, lines = file.relative_to(root).as_posix(), file.read_text().splitlines()
        seen: Counter[str] = Counter()
        for i in places(file):
            text = lines[i].strip()
            seen[text] += 1
            key = f"{seed}:{name}:{text}:{seen[text]}"
            spots.append((hashlib.sha256(key.encode()).hexdigest()[:16], file, i))
    return sorted(spots)


def files_of(area: str, root: Path) -> list[Path]:
    """The files of an area that can hold mistakes."""
    return [
        file
        for file in sorted(root.glob(AREAS[area][1]))
        if not LEFT_OUT.search(file.relative_to(root).as_posix())
    ]


def shares(count: int, areas: list[str]) -> dict[str, int]:
    """How many of `count` mistakes each area gets; they add up to it."""
    total = sum(AREAS[area][0] for area in areas)
    ends, weight = [0], 0
    for area in areas:
        weight += AREAS[area][0]
        ends.append(round(count * weight / total))
    return {area: ends[i + 1] - ends[i] for i, area in enumerate(areas)}


def choose(root: Path, count: int, areas: list[str], seed: int) -> list[Mutant]:
    """`count` mistakes over the areas by their weights, one a line, no two within three lines."""
    mutants: list[Mutant] = []
    for area, wanted in shares(count, areas).items():
        taken: set[tuple[Path, int]] = set()
        for key, file, i in _spots(files_of(area, root), root, seed):
            if wanted == 0:
                break
            if any((file, i + d) in taken for d in range(-3, 4)):
                continue
            line = file.read_text().splitlines()[i]
            rng = random.Random(key)
            options = list(kinds.PYTHON if file.suffix == ".py" else kinds.CPP)
            rng.shuffle(options)
            for kind in options:
                planted = kind(line, len(mutants), rng)
                if planted is None:
                    continue
                name = file.relative_to(root).as_posix()
                mutants.append(
                    Mutant(len(mutants), area, name, i, line, planted[0], planted[1], key)
                )
                taken.add((file, i))
                wanted -= 1
                break
    return mutants
