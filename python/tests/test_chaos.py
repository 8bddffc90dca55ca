"""A few of the runs of tools/chaos_ranks.py, which says what must hold."""

import importlib.util
import shutil
from pathlib import Path

import pytest

from cuop import dist

TOOL = Path(__file__).parents[2] / "tools" / "chaos_ranks.py"

# Over MPI without --enable-recovery mpirun itself ends the survivors of a kill.
CASES = [
    *(("thread", fault) for fault in ("kill", "stop", "exit", "abort")),
    *(("socket", fault) for fault in ("kill", "stop", "abort")),
    *(("mpi+recovery", fault) for fault in ("kill", "stop", "exit")),
]


@pytest.fixture(scope="module")
def chaos():
    spec = importlib.util.spec_from_file_location("chaos_ranks", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("transport", "fault"), CASES)
def test_survivors_raise_in_time_and_name_the_rank(chaos, transport, fault):
    if transport.startswith("mpi") and (
        shutil.which("mpirun") is None or dist.mpi_unavailable_reason()
    ):
        pytest.skip(f"NO MPI HERE: {dist.mpi_unavailable_reason()}")
    case = chaos.Case(transport, fault, number=1, timeout=1.0)
    assert chaos.run(case, is_verbose=False) == []
