"""Functions of one argument on the CPU beside an earlier version of the sources, and their ratio.

    python benchmarks/functions.py                             # beside the commit that BEFORE names
    python benchmarks/functions.py --before HEAD~1 --functions sin cos --levels v4

Both versions' loops are compiled for each instruction set and run in turn over the same array, of 16 Ki
elements, which stay in the cache, and of 4 Mi, which do not; each time is the shortest of many passes.
Instruction sets that this processor lacks are left out. Needs git and g++.
"""

import argparse
import ctypes
import io
import subprocess
import tarfile
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
BEFORE = "afefd07"  # the last one that called glibc's vector functions
FLAGS = "-std=c++20 -shared -fPIC -O3 -fno-trapping-math -ffp-contract=off -fno-math-errno".split()
LEVELS = {
    "v4": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
    "v3": ["-march=x86-64-v3"],
    "baseline": [],
}
NEEDS = {"v4": "avx512f", "v3": "avx2", "baseline": "sse2"}
RANGES = {
    **dict.fromkeys(["rsqrt", "log", "log2", "log10"], (0.01, 100)),
    **dict.fromkeys(["asin", "acos", "atanh"], (-1, 1)),
    **dict.fromkeys(["erf", "tanh"], (-3, 3)),
    **dict.fromkeys(["gelu", "gelu_tanh"], (-5, 5)),
    "sqrt": (0, 100),
    "log1p": (-0.5, 100),
    "erfc": (-3, 10),
    "acosh": (1, 100),
}
FUNCTIONS = (
    "sqrt rsqrt cbrt exp exp2 expm1 log log1p log2 log10 erf erfc sin cos tan asin acos atan "
    "sinh cosh tanh asinh acosh atanh sigmoid silu softplus gelu gelu_tanh"
).split()
SIZES = {"16 Ki": 1 << 14, "4 Mi": 1 << 22}


def compiled(sources: Path, level: str, folder: Path):
    """The function that times a pass, of one version and instruction set."""
    library = folder / f"{sources.parent.name}_{level}.so"
    command = [
        "g++",
        *FLAGS,
        *LEVELS[level],
        "-I",
        sources,
        ROOT / "benchmarks/function_kernels.cpp",
    ]
    subprocess.run([*command, "-o", library, "-lmvec", "-lm"], check=True)
    run = ctypes.CDLL(str(library)).shortest_pass
    run.restype = ctypes.c_double
    pointer, count = ctypes.c_void_p, ctypes.c_int64
    run.argtypes = [ctypes.c_char_p, ctypes.c_bool, pointer, pointer, count, ctypes.c_int]
    return run


def earlier_sources(commit: str, folder: Path) -> Path:
    """The sources of a commit, unpacked."""
    packed = subprocess.run(
        ["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def nanoseconds(runs, name: str, dtype, size: int, rounds: int) -> list[float]:
    """The shortest time of an element, of each version."""
    low, high = RANGES.get(name, (-10, 10))
    x = np.random.default_rng(1).uniform(low, high, size).astype(dtype)
    y = np.empty_like(x)
    best = [np.inf] * len(runs)
    rounds, passes = (rounds, 6) if size < 1 << 20 else (4, 1)
    for _ in range(rounds):
        for i, run in enumerate(runs):
            is_double = dtype == np.float64
            took = run(name.encode(), is_double, x.ctypes.data, y.ctypes.data, size, passes)
            best[i] = min(best[i], took / size * 1e9)
    return best


def main() -> None:
    """The tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--before", default=BEFORE, help="the commit to compare with")
    parser.add_argument("--levels", nargs="*", default=list(LEVELS), choices=LEVELS)
    parser.add_argument("--functions", nargs="*", default=FUNCTIONS, metavar="NAME")
    parser.add_argument("--sizes", nargs="*", default=list(SIZES), choices=SIZES)
    parser.add_argument("--rounds", type=int, default=10, help="over the smaller array")
    arguments = parser.parse_args()
    known = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    levels = [level for level in arguments.levels if NEEDS[level] in known]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "before").mkdir()
        before = earlier_sources(arguments.before, folder / "before")
        versions = (before, ROOT / "src")
        runs = {level: [compiled(each, level, folder) for each in versions] for level in levels}
        for dtype in (np.float32, np.float64):
            for title in arguments.sizes:
                print(f"\n## {np.dtype(dtype).name}, {title} elements\n")
                heads = [f"{level}: before | now | ratio" for level in levels]
                print("| function |", " | ".join(heads), "|")
                print("|---|" + "---|" * 3 * len(levels))
                for name in arguments.functions:
                    cells = []
                    for level in levels:
                        was, now = nanoseconds(
                            runs[level], name, dtype, SIZES[title], arguments.rounds
                        )
                        cells.append(f"{was:.3f} | {now:.3f} | {now / was:.2f}")
                    print(f"| {name} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
