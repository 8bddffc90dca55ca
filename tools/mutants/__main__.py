"""Plants mistakes, builds them once, runs the nearest tests on each, lists those that nobody saw."""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.mutants import kinds, nearest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "mutants"
# What part of the mistakes each area gets, and its files.
AREAS = {
    "memory": (3, "src/cuop/memory/**/*.cpp"),
    "jit": (4, "src/cuop/jit/**/*.cpp"),
    "tune": (2, "src/cuop/tune/**/*.cpp"),
    "ops": (6, "src/cuop/ops/**/*.cpp"),
    "dist": (5, "src/cuop/dist/**/*.cpp"),
    "python": (3, "python/*/**/*.py"),
}
# What runs on GPUs alone, and what only a person sees.
LEFT_OUT = re.compile(
    r"cuda|nvrtc|pinned|warm\.cpp|_isa\.cpp|mpi_module|/bench/|/demo/|/cli/|python/(tests|src)/|"
    r"__init__\.py|snapshot_page|typing\.py"
)
SECONDS = 120  # of one test command; mistakes that loop for ever end here


@dataclass
class Mutant:
    number: int
    area: str
    file: str
    line: int
    original: str
    planted: str
    what: str
    outcome: str = "survived"
    seen_by: str = ""


def places(file: Path) -> list[int]:
    """Indices of the lines that hold code which runs: no declarations, comments, long strings."""
    lines = file.read_text().splitlines()
    if file.suffix == ".py":
        inside: set[int] = set()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and node.body:
                inside.update(range(node.body[0].lineno - 1, node.end_lineno or 0))
        return sorted(inside)
    return [
        i
        for i, line in enumerate(lines)
        if line.startswith("  ")
        and line.strip()
        and not re.match(r"\s*(//|#|static_assert|constexpr|static constexpr|case |R\"|\")", line)
        and "constexpr" not in line
        and not line.rstrip().endswith(",")
    ]


def choose(count: int, areas: list[str], rng: random.Random) -> list[Mutant]:
    """`count` mistakes over the areas by their weights, one a line, no two within three lines."""
    mutants: list[Mutant] = []
    total = sum(AREAS[area][0] for area in areas)
    for area in areas:
        weight, pattern = AREAS[area]
        files = [
            file
            for file in sorted(ROOT.glob(pattern))
            if not LEFT_OUT.search(file.relative_to(ROOT).as_posix())
        ]
        spots = [(file, i) for file in files for i in places(file)]
        rng.shuffle(spots)
        wanted, taken = round(count * weight / total), set()
        for file, i in spots:
            if wanted == 0:
                break
            if any((file, i + d) in taken for d in range(-3, 4)):
                continue
            line = file.read_text().splitlines()[i]
            options = list(kinds.PYTHON if file.suffix == ".py" else kinds.CPP)
            rng.shuffle(options)
            for kind in options:
                planted = kind(line, len(mutants), rng)
                if planted is None:
                    continue
                name = file.relative_to(ROOT).as_posix()
                mutants.append(Mutant(len(mutants), area, name, i, line, planted[0], planted[1]))
                taken.add((file, i))
                wanted -= 1
                break
    return mutants


def write_file(tree: Path, name: str, mutants: list[Mutant]) -> None:
    """The file of the tree with these mistakes planted in it."""
    lines = (ROOT / name).read_text().splitlines()
    for mutant in mutants:
        lines[mutant.line] = mutant.planted
    if name.endswith(".py"):
        first = next(
            node.lineno - 1
            for node in ast.parse((ROOT / name).read_text()).body
            if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            and not (isinstance(node, ast.ImportFrom) and node.module == "__future__")
        )
        lines[first] = kinds.PYTHON_HEADER + lines[first]
    else:
        lines.insert(0, f'#include "{tree}/mutant.h"\n#line 1')
    text = "\n".join(lines) + "\n"
    target = tree / name
    if target.read_text() != text:
        target.write_text(text)


def copy_tree(tree: Path) -> None:
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    for name in names:
        if not (ROOT / name).is_file():
            continue
        target = tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != (ROOT / name).read_bytes():
            shutil.copyfile(ROOT / name, target)
            shutil.copymode(ROOT / name, target)
    (tree / "mutant.h").write_text(kinds.CPP_HEADER)
    if not (tree / ".venv").exists():
        (tree / ".venv").symlink_to(ROOT / ".venv")


def build(tree: Path, preset: str, mutants: list[Mutant]) -> list[Mutant]:
    """Builds the tree; a mistake that does not compile is taken out. Answers those that are in."""
    subprocess.run(["cmake", "--preset", preset], cwd=tree, check=True, capture_output=True)
    command = [
        "cmake",
        "--build",
        f"build/{preset}",
        "-j2",
        "--target",
        "cuop_package",
        "cuop_tests",
    ]
    for _ in range(20):
        done = subprocess.run(
            [*command, "--", "-k0"], cwd=tree, capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            return mutants
        output = done.stdout + done.stderr
        broken = {
            (match[1], int(match[2]) - 1)
            for match in re.finditer(r"(src/cuop/[\w/]+\.cpp):(\d+):\d+: error", output)
        }
        if not broken:
            raise SystemExit(f"the build failed without naming a line:\n{output[-3000:]}")
        files = {name for name, _ in broken}
        wrong = {
            m.number
            for m in mutants
            if any(m.file == name and abs(m.line - line) <= 1 for name, line in broken)
        }
        # A file that fails elsewhere than at a mistake loses all of its own.
        for name in files:
            if not any(m.number in wrong for m in mutants if m.file == name):
                wrong |= {m.number for m in mutants if m.file == name}
        mutants = [m for m in mutants if m.number not in wrong]
        for name in files:
            write_file(tree, name, [m for m in mutants if m.file == name])
    raise SystemExit("the build still fails after 20 attempts")


def commands(tree: Path, preset: str, name: str) -> list[list[str]]:
    python = str(ROOT / ".venv" / "bin" / "python")
    result = []
    if name.startswith("src/"):
        chosen = nearest.googletest_filter(ROOT, name)
        if chosen:
            tests = str(tree / f"build/{preset}/tests/cuop_tests")
            result.append(
                [tests, f"--gtest_filter={chosen}", "--gtest_fail_fast", "--gtest_brief=1"]
            )
    files = nearest.pytest_files(ROOT, name)
    if files:
        result.append([python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files])
    return result


def look(
    tree: Path, preset: str, mutant: Mutant | None, name: str, limit: float
) -> tuple[str, str]:
    """Runs the nearest tests; ("caught" or "survived", by whom)."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree / f"build/{preset}/python"),
        "CUOP_CACHE_DIR": str(tree / "build/cache" / str(mutant.number if mutant else "none")),
        "CUOP_MUTANT": str(mutant.number if mutant else -1),
    }
    for command in commands(tree, preset, name):
        try:
            done = subprocess.run(
                command,
                cwd=tree,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=limit,
                check=False,
                errors="replace",
            )
        except subprocess.TimeoutExpired:
            return "caught", "time-out"
        if done.returncode != 0:
            failed = re.search(r"\[  FAILED  \] ([\w./]+)|^FAILED (\S+)", done.stdout, re.MULTILINE)
            by = (failed[1] or failed[2]) if failed else f"exit code {done.returncode}"
            return "caught", by
    return "survived", ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="mistakes to plant")
    parser.add_argument("--only", default=",".join(AREAS), help="areas, of " + ", ".join(AREAS))
    parser.add_argument("--seed", type=int, default=1, help="another choice of mistakes")
    parser.add_argument("--jobs", type=int, default=2, help="tests that run side by side")
    parser.add_argument("--preset", default="release", help="of CMakePresets.json, to build with")
    options = parser.parse_args()
    areas = options.only.split(",")
    if unknown := set(areas) - set(AREAS):
        parser.error(f"--only: {', '.join(sorted(unknown))} is none of {', '.join(AREAS)}")
    # Compiling takes some of them out again.
    planned = choose(options.count + options.count // 4, areas, random.Random(options.seed))
    tree = FOLDER / "tree"
    copy_tree(tree)
    for name in sorted({m.file for m in planned}):
        write_file(tree, name, [m for m in planned if m.file == name])
    print(f"planted {len(planned)}, building {tree} ...", flush=True)
    mutants = build(tree, options.preset, planned)
    rng = random.Random(options.seed)
    mutants = sorted(rng.sample(mutants, min(options.count, len(mutants))), key=lambda m: m.number)
    print(f"{len(planned) - len(mutants)} left out (not C++ any more, or not needed)", flush=True)

    limits: dict[str, float] = {}
    for name in sorted({m.file for m in mutants}):
        key = json.dumps(commands(tree, options.preset, name))
        if key not in limits:
            start = time.monotonic()
            outcome, by = look(tree, options.preset, None, name, 10 * SECONDS)
            if outcome != "survived":
                raise SystemExit(f"the tests of {name} fail without a mistake: {by}")
            limits[key] = SECONDS + 3 * (time.monotonic() - start)

    def judge(mutant: Mutant) -> None:
        limit = limits[json.dumps(commands(tree, options.preset, mutant.file))]
        mutant.outcome, mutant.seen_by = look(tree, options.preset, mutant, mutant.file, limit)
        print(f"{mutant.number:4} {mutant.outcome:8} {mutant.file}:{mutant.line + 1}"
              f"  {mutant.what}  {mutant.seen_by}", flush=True)  # fmt: skip

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(judge, mutants))
    (FOLDER / "result.json").write_text(json.dumps([asdict(m) for m in mutants], indent=1))
    print("\nSurvivors:")
    for m in mutants:
        if m.outcome == "survived":
            print(f"  {m.file}:{m.line + 1}: {m.what}\n    {m.original.strip()}")
    for area in areas:
        mine = [m for m in mutants if m.area == area]
        caught = sum(m.outcome == "caught" for m in mine)
        print(f"{area}: {caught} of {len(mine)} caught")
    caught = sum(m.outcome == "caught" for m in mutants)
    print(f"{caught} of {len(mutants)} caught ({100 * caught / max(1, len(mutants)):.0f} %)")
    sys.exit(0 if caught >= 0.9 * len(mutants) else 1)


if __name__ == "__main__":
    main()
