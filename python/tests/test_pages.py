"""The code blocks of the documented pages run as they are printed.

The pages and their runner stand beside the repository, in ../shared/pages, or where CUOP_PAGES says.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = Path(
    os.environ.get("CUOP_PAGES", Path(__file__).resolve().parents[3] / "shared" / "pages")
).resolve()
# Blocks that name no GPU.
OF_GENESIS = [0, 2, 3, 6, 8, 9]
# All but a product of 10 TFLOP, which the runner leaves to GPUs.
OF_DISTRIBUTED_GPU = [*range(34), *range(35, 43)]

pytestmark = pytest.mark.skipif(
    not (PAGES / "run.py").exists(),
    reason=f"THE DOCUMENTED PAGES WERE NOT RUN: no {PAGES}/run.py; CUOP_PAGES names their folder",
)


def run(folder, *arguments, launcher=()):
    """Which blocks ran to their end, which failed, and the output."""
    done = subprocess.run(
        [*launcher, sys.executable, PAGES / "run.py", *arguments],
        cwd=folder,  # the pages write to the current folder
        env={
            **os.environ,
            "TMPDIR": str(folder),
            "CUOP_DEVICE": "cpu",
            "CUDA_VISIBLE_DEVICES": "",  # for PyTorch, whose tensors some blocks take to a GPU
            "CUOP_CACHE_DIR": str(folder / "cache"),
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    blocks = re.findall(r"(ok|FAIL) +\w+\[(\d+)\]", done.stdout)
    output = done.stdout + done.stderr
    good, bad = ([int(i) for state, i in blocks if state == kind] for kind in ("ok", "FAIL"))
    assert (done.returncode == 0) == (bad == []), output
    return good, bad, output


def test_every_block_of_cuop_runs_on_the_cpu(tmp_path):
    good, bad, output = run(tmp_path, "cuop")
    assert (good, bad) == (list(range(21)), []), output
    assert os.listdir(tmp_path / "jit_cache")  # where the page keeps what wrappers found out


def test_blocks_of_genesis_that_name_no_gpu_run_without_one(tmp_path):
    good, bad, output = run(tmp_path, "genesis", "--only", ",".join(map(str, OF_GENESIS)))
    assert (good, bad) == (OF_GENESIS, []), output


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no mpirun")
@pytest.mark.skipif(
    importlib.util.find_spec("torch") is not None, reason="PyTorch's GPU, which is hidden, is used"
)
@pytest.mark.parametrize("ranks", [1, 3, 4, 7])
def test_blocks_of_distributed_gpu_run_on_ranks(tmp_path, ranks):
    launcher = ("mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks))
    blocks = ",".join(map(str, OF_DISTRIBUTED_GPU))
    good, bad, output = run(tmp_path, "distributed_gpu", "--only", blocks, launcher=launcher)
    assert (good, bad) == (OF_DISTRIBUTED_GPU, []), output
