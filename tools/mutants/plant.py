"""A copy of the sources with mistakes in it, and its build."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
from pathlib import Path

from tools.mutants import kinds
from tools.mutants.choice import Mutant

BROKEN = "not_compiling.json"  # beside the tree: ids of mistakes that are no C++
ATTEMPTS = 20  # to build; each takes out the mistakes that do not compile


def planted_text(root: Path, tree: Path, name: str, mutants: list[Mutant]) -> str:
    """The file of the repository with these mistakes in it."""
    lines = (root / name).read_text().splitlines()
    for mutant in mutants:
        lines[mutant.line] = mutant.planted
    if name.endswith(".py"):
        first = next(
            node.lineno - 1
            for node in ast.parse((root / name).read_text()).body
            if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            and not (isinstance(node, ast.ImportFrom) and node.module == "__future__")
        )
        lines[first] = kinds.PYTHON_HEADER + lines[first]
    else:
        lines.insert(0, f'#include "{tree}/mutant.h"\n#line 1')
    return "\n".join(lines) + "\n"


def is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def write(path: Path, text: str) -> None:
    """Writes it where it differs, so that what need not be built again is not."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def copy_tree(root: Path, tree: Path, mutants: list[Mutant]) -> list[Mutant]:
    """Copies what git knows of, with the mistakes in it. Answers those that are still Python."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    for mutant in list(mutants):
        if mutant.file.endswith(".py"):
            if not is_python(planted_text(root, tree, mutant.file, [mutant])):
                mutants.remove(mutant)
    changed = {m.file for m in mutants}
    for name in names:
        source, target = root / name, tree / name
        if not source.is_file():
            target.unlink(missing_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if name in changed:
            text = planted_text(root, tree, name, [m for m in mutants if m.file == name])
            write(target, text)
        elif not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copyfile(source, target)
            shutil.copymode(source, target)
    write(tree / "mutant.h", kinds.CPP_HEADER)
    if not (tree / ".venv").exists():
        (tree / ".venv").symlink_to(root / ".venv")
    return mutants


def _is_wrong(mutant: Mutant, broken: set[tuple[str, int]]) -> bool:
    return any(mutant.file == name and abs(mutant.line - line) <= 1 for name, line in broken)


def without_broken(tree: Path, mutants: list[Mutant]) -> list[Mutant]:
    """Those that no build before found not to compile."""
    known = tree.parent / BROKEN
    broken = set(json.loads(known.read_text())) if known.exists() else set()
    return [m for m in mutants if m.id not in broken]


def _remember_broken(tree: Path, ids: set[str]) -> None:
    known = tree.parent / BROKEN
    before = set(json.loads(known.read_text())) if known.exists() else set()
    known.write_text(json.dumps(sorted(before | ids), indent=0))


def build(root: Path, tree: Path, preset: str, mutants: list[Mutant]) -> list[Mutant]:
    """Builds the tree; a mistake that does not compile is taken out. Answers those that are in."""
    subprocess.run(["cmake", "--preset", preset], cwd=tree, check=True, capture_output=True)
    targets = ["cuop_package", "cuop_tests"]
    command = ["cmake", "--build", f"build/{preset}", "-j2", "--target", *targets, "--", "-k0"]
    for _ in range(ATTEMPTS):
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
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
        wrong = {m.number for m in mutants if _is_wrong(m, broken)}
        # A file that fails elsewhere than at a mistake loses all of its own.
        for name in files:
            mine = {m.number for m in mutants if m.file == name}
            if not mine & wrong:
                wrong |= mine
        _remember_broken(tree, {m.id for m in mutants if m.number in wrong})
        mutants = [m for m in mutants if m.number not in wrong]
        for name in files:
            text = planted_text(root, tree, name, [m for m in mutants if m.file == name])
            write(tree / name, text)
    raise SystemExit(f"the build still fails after {ATTEMPTS} attempts")
