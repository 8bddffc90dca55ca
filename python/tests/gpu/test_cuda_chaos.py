"""A few of the runs of tools/chaos_ranks.py whose ranks compute on simulated GPUs that fail."""

import pytest
from processes import simulated
from test_chaos import chaos, needs_its_network

pytestmark = simulated
__all__ = ["chaos"]  # the fixture

TRANSPORTS = ["thread+gpu", "socket+gpu", "mpi+gpu"]
CASES = [
    *((transport, fault) for transport in TRANSPORTS for fault in ("memory", "refused", "lost")),
    *(("socket+gpu", fault) for fault in ("kill", "stop")),
    ("mpi+gpu", "kill"),
]


@pytest.mark.parametrize(("transport", "fault"), CASES)
def test_the_others_name_the_rank_and_go_on(chaos, transport, fault):
    needs_its_network(transport)
    case = chaos.Case(transport, fault, number=1, timeout=60.0)
    case.recover = fault in ("memory", "refused")
    case.shrink, case.rethrow = not case.recover, False
    assert chaos.run(case, is_verbose=False) == []
