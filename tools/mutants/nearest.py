"""Which tests stand nearest to a file: GoogleTest suites and pytest files, nearest first."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

# Files of suites that only compile kernels or look at their text, not at the code beside them.
TEXTS = re.compile(r"(_budget|_text)_test\.cpp$|expr_cuda|pool_fuzz")
# Single tests that take many seconds, for compiling, or for waiting on purpose.
SLOW = (
    "BuildOptionsCompiled.RegistersAreLimited",
    "CompileServiceTest.TheCallerGoesOnWhereTheCompilerCannotBeStopped",
    "CompileServiceTest.TheProcessEndsCleanlyAfterACompilationWasLeft",
    "DiskCacheTest.ManyProcessesMakeEachEntryOnce",
    "DiskCacheTest.SurvivesProcessesThatAreKilled",
)
# Suites that compile for seconds: only for the files that they stand beside.
COMPILING = ("BuildOptionsCompiled", "CompileServiceTest", "KernelShapeCompiled")
# Suites that are not named in a file beside, by the start of the source's path.
CONFORMANCE = (
    ("src/cuop/dist/comm/thread", "Communicator_thread"),
    ("src/cuop/dist/comm/socket", "Communicator_socket"),
    ("src/cuop/dist/comm/p2p", "Communicator_socket"),
    ("src/cuop/dist/comm/packet", "Communicator_socket"),
    ("src/cuop/dist/comm/failure", "Communicator_socket"),
    ("src/cuop/dist/comm/", "Communicator_*"),
    ("src/cuop/dist/agree", "DistCall"),
)

# pytest files of what is seen from Python, by the start of the path.
PYTEST = (
    ("src/cuop/core/file_store", ("kernel_cache", "tune_cli")),
    ("src/cuop/memory/mapped_file", ("npy",)),
    ("src/cuop/memory/", ("memory",)),
    ("src/cuop/jit/cpu/", ("fusion", "elementwise")),
    ("src/cuop/jit/compil", ("jit_config", "kernel_cache")),
    ("src/cuop/jit/disk_cache", ("kernel_cache",)),
    ("src/cuop/jit/kernel_", ("user_kernel", "jit")),
    ("src/cuop/jit/", ("fusion", "measure")),
    ("src/cuop/tune/", ("tune_cli",)),
    ("src/cuop/ops/elementwise/", ("elementwise", "out")),
    ("src/cuop/ops/reduce/", ("reduce", "sums")),
    ("src/cuop/ops/index/", ("index", "arrange")),
    ("src/cuop/ops/copy/", ("tensor", "arrange", "out")),
    ("src/cuop/ops/create/", ("tensor", "values")),
    ("src/cuop/ops/norm/", ("softmax_norm",)),
    ("src/cuop/ops/softmax/", ("softmax_norm",)),
    ("src/cuop/ops/", ("{family}", "values", "out")),
    ("src/cuop/dist/comm/", ("comm",)),
    ("src/cuop/dist/", ("dist_tensor", "distributed_gpu", "distributed_grids")),
    ("python/cuop/_arguments", ("calls", "public_calls", "npy")),
    ("python/cuop/dist/", ("comm", "dist_tensor", "distributed_gpu")),
    ("python/cuop/npy", ("npy",)),
    ("python/cuop/files", ("npy", "measure", "security")),
    ("python/cuop/jit", ("jit_config", "jit", "kernel_cache", "export")),
    ("python/cuop/memory", ("memory", "calls")),
    ("python/cuop/device", ("device", "calls", "memory")),
    ("python/cuop/system", ("text", "cli")),
    ("python/cuop/", ("{stem}", "calls", "public_calls", "tensor")),
    ("python/genesis/", ("genesis", "user_kernel")),
    (
        "python/distributed_gpu/",
        (
            "distributed_gpu",
            "distributed_grids",
            "distributed_manager",
            "distributed_mpi",
            "distributed_page",
            "auto_executor",
            "auto_refusals",
        ),
    ),
)


@cache
def _suites(file: Path) -> tuple[str, ...]:
    matches = re.finditer(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*\w+\)", file.read_text(), re.MULTILINE)
    return tuple(dict.fromkeys(match[1] for match in matches))


def _is_near(test: Path, source: str) -> bool:
    """Whether they are called alike, or the test is called like the source's folder."""
    parts = Path(source).relative_to("src/cuop").parts
    stem = Path(source).stem.removesuffix("_cpu").removesuffix("_plan")
    name = test.stem.removesuffix("_test").removesuffix("_plan")
    return name in (stem, *parts[1:-1]) or stem.startswith(name) or name.startswith(stem)


def _filter(suites: list[str]) -> str:
    chosen = ":".join(f"{name}.*:*/{name}.*" for name in dict.fromkeys(suites))
    return f"{chosen}-{':'.join(SLOW)}"


def googletest_filters(root: Path, source: str) -> list[str]:
    """Filters for the suites that stand beside src/cuop/<layer>/...: the nearest, the layer's rest."""
    layer = Path(source).relative_to("src/cuop").parts[0]
    files = sorted((root / "tests" / layer).rglob("*_test.cpp"))
    near = [file for file in files if _is_near(file, source) and not TEXTS.search(file.name)]
    first = [name for file in near for name in _suites(file)]
    for prefix, suite in CONFORMANCE:
        if source.startswith(prefix):
            first.append(suite)
            break
    others = [
        name
        for file in files
        if file not in near and not TEXTS.search(file.name)
        for name in _suites(file)
        if name not in COMPILING
    ]
    return [_filter(suites) for suites in (first, others) if suites]


@cache
def _words(file: Path) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", file.read_text("utf-8")))


def _naming(root: Path, source: str, most: int = 3) -> list[str]:
    """Files of python/tests that name what a Python file defines; a name that few have counts more."""
    tree = ast.parse((root / source).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.ClassDef)
    defined = {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
    tests = sorted((root / "python/tests").glob("test_*.py"))
    weights = dict.fromkeys(tests, 0.0)
    for name in sorted(each for each in defined if not each.startswith("_")):
        having = [test for test in tests if name in _words(test)]
        for test in having:
            weights[test] += 1 / len(having)
    nearest = sorted((test for test in tests if weights[test]), key=lambda test: -weights[test])
    return [test.relative_to(root).as_posix() for test in nearest[:most]]


def pytest_files(root: Path, source: str) -> list[str]:
    """The files of python/tests for a source file, those that exist."""
    files = _naming(root, source) if source.endswith(".py") else []
    family = Path(source).parent.name
    for prefix, names in PYTEST:
        if source.startswith(prefix):
            wanted = [name.format(family=family, stem=Path(source).stem) for name in names]
            files += [f"python/tests/test_{name}.py" for name in wanted]
            break
    return [file for file in dict.fromkeys(files) if (root / file).exists()]
