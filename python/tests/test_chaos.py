"""A few of the runs of tools/chaos_ranks.py, which says what must hold."""

import importlib.util
import shutil
from pathlib import Path

import pytest

from cuop import dist

TOOL = Path(__file__).parents[2] / "tools" / "chaos_ranks.py"

# Over MPI without --enable-recovery mpirun itself ends the survivors of a kill: there nobody may be
# left waiting.
CASES = [
    *(("thread", fault) for fault in ("kill", "stop", "exit", "abort")),
    *(("socket", fault) for fault in ("kill", "stop", "exit", "abort")),
    *(("mpi", fault) for fault in ("kill", "stop", "exit", "abort", "raise")),
    *(("mpi+recovery", fault) for fault in ("kill", "stop", "exit", "abort")),
]
SHRINKING = [
    *(("thread", fault) for fault in ("kill", "exit", "raise")),
    *(("socket", fault) for fault in ("kill", "stop", "raise")),
    *(("socket+hosts", fault) for fault in ("kill", "stop")),
    *(("mpi+recovery", fault) for fault in ("kill", "stop", "raise")),
]


@pytest.fixture(scope="module")
def chaos():
    spec = importlib.util.spec_from_file_location("chaos_ranks", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def needs_its_network(transport):
    if transport.startswith("mpi") and (
        shutil.which("mpirun") is None or dist.mpi_unavailable_reason()
    ):
        pytest.skip(f"NO MPI HERE: {dist.mpi_unavailable_reason()}")


@pytest.mark.parametrize(("transport", "fault"), CASES)
def test_survivors_raise_in_time_and_name_the_rank(chaos, transport, fault):
    needs_its_network(transport)
    case = chaos.Case(transport, fault, number=1, timeout=1.0)
    case.shrink = False
    assert chaos.run(case, is_verbose=False) == []


# The time-out is out of reach: what ends the waits is the heartbeat, or what the rank says itself.
@pytest.mark.parametrize(("transport", "fault"), SHRINKING)
def test_survivors_go_on_without_the_rank(chaos, transport, fault):
    needs_its_network(transport)
    case = chaos.Case(transport, fault, number=2, timeout=60.0)
    case.shrink, case.recover, case.rethrow = True, False, False
    assert chaos.run(case, is_verbose=False) == []
