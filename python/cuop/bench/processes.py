"""Cases that are whole processes: the time of an import, and oneDNN called directly from C++."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median

from cuop.bench.measure import Roofs, Row

_IMPORT_GOAL = 0.1  # seconds beyond NumPy's


def import_row() -> Row:
    """Seconds that `import cuop` adds to `import numpy`; the peer's column is the bound."""
    code = "import time, numpy; s = time.perf_counter(); import {}; print(time.perf_counter() - s)"
    samples = []
    for _ in range(7):
        done = subprocess.run(
            [sys.executable, "-c", code.format("cuop, genesis, distributed_gpu")],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        samples.append(float(done.stdout))
    return Row(
        "import cuop, genesis, distributed_gpu", "-", median(samples), "bound of 0.1 s",
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


def _conv_program() -> str | None:
    """Beside the package in a build tree, or on the path."""
    built = Path(__file__).parents[3] / "benchmarks" / "cuop-bench-conv"
    return str(built) if built.exists() else shutil.which("cuop-bench-conv")
