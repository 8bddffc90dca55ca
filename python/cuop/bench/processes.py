"""Cases that are whole processes: the time of an import, and oneDNN called directly from C++."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from cuop.bench.measure import Roofs, Row

IMPORT = "import cuop, genesis, distributed_gpu"
_IMPORT_GOAL = 0.1  # seconds beyond NumPy's


def import_row() -> Row:
    """Seconds that `import cuop` adds to `import numpy`; the peer's column is the bound."""
    code = "import time, numpy; s = time.perf_counter(); import {}; print(time.perf_counter() - s)"
    samples = []
    for _ in range(7):
        done = subprocess.run(
            [sys.executable, "-c", code.format(IMPORT.removeprefix("import "))],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        samples.append(float(done.stdout))
    return Row(
        IMPORT, "-", median(samples), "bound of 0.1 s",
        _IMPORT_GOAL, 1.0, 0.0, float("nan"), {"cuop": samples}, kind="E",
    )  # fmt: skip


def conv_rows(roofs: Roofs) -> list[Row]:
    """conv2d beside oneDNN called directly, from the C++ benchmark when it was built."""
    program = _conv_program()
    if program is None:
        return []
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    return [
        Row(
            case["name"], "float32", case["cuop"], "oneDNN called directly", case["onednn"], 1.0,
            case["flops"] / roofs.flops, case["error"],
            {"cuop": case["cuop_samples"], "oneDNN called directly": case["onednn_samples"]},
        )
        for case in json.loads(done.stdout)
    ]  # fmt: skip


_FIRST_USES = """
import json, time
import cuop
def timed(run):
    start = time.perf_counter()
    run()
    cuop.synchronize("cuda")
    return time.perf_counter() - start
first = timed(lambda: cuop.ones(1 << 20, device="cuda") + 1)
x, y = cuop.random((2, 1 << 16)).to("cuda")
steps = [cuop.exp, cuop.abs, cuop.relu, cuop.square, cuop.floor]
joins = [cuop.multiply, cuop.subtract, cuop.maximum]
def chain(number):
    def run(x, y):
        value = x
        for part in (number, number // 2, number // 4):
            value = joins[part % 3](steps[part % 5](value), y)
        return value
    return cuop.fuse(run)
kernels = [timed(lambda: chain(number)(x, y)) for number in range(3, 15)]
print(json.dumps({"first": first, "kernels": kernels[1:]}))
"""


def first_use_rows() -> list[Row]:
    """Seconds until a process's first operation on a GPU is done, and of the first call of a new
    fused kernel: compiled, then in a second process from disk. The peer's column is the bound."""
    with tempfile.TemporaryDirectory() as folder:
        runs = []
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-c", _FIRST_USES], stdout=subprocess.PIPE, text=True, check=True,
                env={**os.environ, "CUOP_CACHE_DIR": folder},
            )  # fmt: skip
            runs.append(json.loads(done.stdout))
    cold, warm = runs
    return [
        Row(
            name, "float32", median(samples), f"bound of {bound * 1e3:g} ms", bound, 1.0, 0.0,
            float("nan"), {"cuop": samples}, kind="S",
        )
        for name, samples, bound in (
            ("first operation of a process", [cold["first"], warm["first"]], 0.35),
            ("new fused kernel, compiled", cold["kernels"], 0.06),
            ("new fused kernel, from disk", warm["kernels"], 0.001),
        )
    ]  # fmt: skip


def _conv_program() -> str | None:
    """Beside the package in a build tree, or on the path."""
    built = Path(__file__).parents[3] / "benchmarks" / "cuop-bench-conv"
    return str(built) if built.exists() else shutil.which("cuop-bench-conv")
