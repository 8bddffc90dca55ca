"""The example programs run as a user runs them: each checks what it computes."""

import sys
from pathlib import Path

import fresh_process
import pytest

import cuop

EXAMPLES = Path(__file__).parents[2] / "examples" / "python"
HAS_GPU = cuop.device_count("cuda") > 0
on_gpu = pytest.mark.skipif(not HAS_GPU, reason="needs a CUDA GPU")


def run(name, device):
    done = fresh_process.run(
        [sys.executable, EXAMPLES / name], {"CUOP_DEVICE": device}, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(": all checks hold\n")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=on_gpu)])
@pytest.mark.parametrize("name", ["tensors.py", "operators.py", "jit.py", "memory.py", "ranks.py"])
def test_program(name, device):
    run(name, device)


@on_gpu
def test_exchange_with_other_libraries():
    for library in ("torch", "cupy", "triton"):
        pytest.importorskip(library)
    run("exchange.py", "cuda")


def test_every_program_is_run():
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert names == {
        "tensors.py", "operators.py", "jit.py", "memory.py", "exchange.py", "ranks.py"
    }  # fmt: skip
