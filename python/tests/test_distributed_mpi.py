"""distributed_gpu on processes under mpirun."""

import re
import shutil
import sys
from pathlib import Path

import pytest
from fresh_process import run

from cuop import dist

SCRIPT = Path(__file__).with_name("ranks_script.py")
CHAIN = Path(__file__).parents[2] / "examples" / "python" / "ranks.py"


TILES = Path(__file__).with_name("tiles_script.py")


def run_under_mpirun(script, ranks, **variables):
    """What it writes; fails unless every rank ends well."""
    if shutil.which("mpirun") is None or dist.mpi_unavailable_reason():
        pytest.skip(
            f"NO MPI HERE, ranks under mpirun are untested: {dist.mpi_unavailable_reason()}"
        )
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(ranks)]
    return written_by([*command, sys.executable, script], CUOP_COMM_TIMEOUT="60", **variables)


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


@pytest.mark.parametrize(("ranks", "reads"), [(2, "1"), (3, "1"), (7, "1"), (3, "0")])
def test_arrays_larger_than_memory(ranks, reads):
    """Ranks read rank 0's arrays where they lie, or get their parts in messages."""
    written = run_under_mpirun(TILES, ranks, CUOP_PEER_MEMORY=reads)
    passed = sorted(int(rank) for rank in re.findall(r"\[rank (\d+)\] passed", written))
    assert passed == list(range(ranks)), written


# Rank 0 is interrupted while rank 1 goes on with its tiles, and uses the memory that it gets next.
LATE = """
import time
import numpy as np
import cuop
from cuop import dist, executor

comm = dist.world()
root = comm.rank == 0
rng = np.random.default_rng(0)
given = [rng.standard_normal((1200, 900)), rng.standard_normal((900, 1100))] if root else [None] * 2

def interrupt(done, whole):
    raise KeyboardInterrupt

before = cuop.memory_allocated("cpu")
late = {"on_progress": interrupt} if root else {"on_tile": lambda low, high: time.sleep(0.02)}
try:
    executor.run(comm, executor.matmul(), given, memory_limit=300_000, **late)
except (KeyboardInterrupt, cuop.CommunicationError):
    pass
else:
    raise AssertionError("the interrupt was lost")
if root:
    held = [cuop.full((1200, 1100), 7.0, dtype="float64", device="cpu") for _ in range(6)]
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        assert all((np.asarray(each) == 7).all() for each in held), "rank 1 wrote to other tensors"
        time.sleep(0.05)
made, report = executor.run(comm, executor.matmul(), given, memory_limit=300_000)
if root:
    assert report.plan.tiles > 50
    np.testing.assert_allclose(np.asarray(made), given[0] @ given[1], rtol=1e-10, atol=1e-10)
    del made, held
    assert cuop.memory_allocated("cpu") == before, "the failed call's result is still there"
print("passed", flush=True)
"""


def test_who_is_late_in_a_failed_call_writes_to_nothing_else(tmp_path):
    script = tmp_path / "late.py"
    script.write_text(LATE)
    assert run_under_mpirun(script, 2).split() == ["passed"] * 2
