"""Which tests stand nearest to a file: GoogleTest suites and pytest files, nearest first."""

from __future__ import annotations

import re
from pathlib import Path

# Suites that take long and look at compiled kernels, not at the code beside them.
LONG = re.compile(r"(_budget|_text)_test\.cpp$|compile_service|pool_fuzz")

# pytest files of what is seen from Python, by the start of the path.
PYTEST = (
    ("src/cuop/memory/", ("memory",)),
    ("src/cuop/jit/", ("fusion", "elementwise", "jit", "kernel_cache", "user_kernel")),
    ("src/cuop/tune/", ("tune_cli", "jit", "kernel_cache")),
    ("src/cuop/ops/elementwise/", ("elementwise", "out")),
    ("src/cuop/ops/reduce/", ("reduce",)),
    ("src/cuop/ops/index/", ("index", "arrange")),
    ("src/cuop/ops/copy/", ("tensor", "arrange", "out")),
    ("src/cuop/ops/create/", ("tensor", "values")),
    ("src/cuop/ops/norm/", ("softmax_norm",)),
    ("src/cuop/ops/softmax/", ("softmax_norm",)),
    ("src/cuop/ops/", ("{family}", "values", "out")),
    ("src/cuop/dist/comm/", ("comm", "distributed_mpi")),
    ("src/cuop/dist/", ("dist_tensor", "distributed_gpu", "distributed_grids")),
    ("python/cuop/dist/", ("comm", "dist_tensor", "distributed_gpu")),
    ("python/cuop/npy", ("npy", "cli")),
    ("python/cuop/files", ("npy", "cli")),
    ("python/cuop/", ("{stem}", "calls", "public_calls", "tensor", "cli")),
    ("python/genesis/", ("genesis",)),
    ("python/distributed_gpu/", ("distributed_gpu", "distributed_grids", "distributed_manager")),
)


def _suites(files: list[Path]) -> list[str]:
    found: dict[str, None] = {}
    for file in files:
        text = file.read_text()
        for match in re.finditer(r"^TEST(?:_F|_P)?\((\w+), \w+\)", text, re.MULTILINE):
            found[match[1]] = None
    return list(found)


def googletest_filter(root: Path, source: str) -> str | None:
    """The filter for the suites beside src/cuop/<layer>/...; None where there are none."""
    parts = Path(source).relative_to("src/cuop").parts
    files = sorted((root / "tests" / parts[0]).rglob("*.cpp"))
    files = [file for file in files if not LONG.search(file.name)]
    stem = Path(source).stem.removesuffix("_cpu")
    near = [
        file
        for file in files
        if file.stem.removesuffix("_test") in (stem, *parts[1:-1])
        or stem.startswith(file.stem.removesuffix("_test"))
    ]
    names = _suites(near or files) if parts[0] in ("ops",) else _suites(files)
    if parts[0] == "ops" and not near:
        names = _suites(files)
    if not names:
        return None
    return ":".join(f"{name}.*:*/{name}.*" for name in names)


def pytest_files(root: Path, source: str) -> list[str]:
    """The files of python/tests for a source file, those that exist."""
    family = Path(source).parent.name
    for prefix, names in PYTEST:
        if source.startswith(prefix):
            wanted = [name.format(family=family, stem=Path(source).stem) for name in names]
            files = [f"python/tests/test_{name}.py" for name in wanted]
            return [file for file in files if (root / file).exists()]
    return []
