"""distributed_gpu on processes under mpirun."""

import shutil
import sys
from pathlib import Path

import pytest
from fresh_process import run

from cuop import dist

SCRIPT = Path(__file__).with_name("ranks_script.py")
CHAIN = Path(__file__).parents[2] / "examples" / "python" / "ranks.py"


def run_under_mpirun(script, ranks):
    """What it writes; fails unless every rank ends well."""
    if shutil.which("mpirun") is None or dist.mpi_unavailable_reason():
        pytest.skip(
            f"NO MPI HERE, ranks under mpirun are untested: {dist.mpi_unavailable_reason()}"
        )
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(ranks)]
    return written_by([*command, sys.executable, script], CUOP_COMM_TIMEOUT="60")


def written_by(command, **variables):
    done = run(command, variables, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_the_same_script_under_mpirun(ranks):
    written = run_under_mpirun(SCRIPT, ranks)
    assert written.splitlines() == [f"[rank {rank}] passed" for rank in range(ranks)]


@pytest.mark.parametrize("ranks", [2, 3, 7])
def test_the_chain_that_also_runs_on_threads(ranks):
    assert run_under_mpirun(CHAIN, ranks) == "ranks: all checks hold\n"


def test_the_same_script_on_one_rank():
    written_by([sys.executable, SCRIPT])
