"""The GPU benchmark's timing, on libraries that stand in for those of a GPU."""

import numpy as np
import pytest
from fresh_process import run_cuop

from cuop.bench import gpu_measure
from cuop.bench.measure import Roofs


class Library:
    """Does at once what it is asked; counts waits, and calls in graphs."""

    def __init__(self):
        self.waits = 0
        self.replays = 0

    def synchronize(self):
        self.waits += 1

    def graph(self, run):
        run()

        def replay():
            self.replays += 1

        return replay


def case(**changes):
    given = {"cuop": [], "torch": []}
    return given, gpu_measure.GpuCase(
        "a case", "float32", given["cuop"].append, {"torch": given["torch"].append},
        {("torch", "G"): 1.0, ("torch", "E"): 1.5, ("torch", "S"): 2.0}, **changes,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(gpu_measure, "_BATCH_SECONDS", 2e-4)


def test_every_goal_is_a_row_of_its_kind():
    libraries = {"cuop": Library(), "torch": Library()}
    _, tried = case(nbytes=4000)
    rows = gpu_measure.measure(tried, libraries, Roofs(1e9, 1e12))
    assert [(row.kind, row.goal) for row in rows] == [("G", 1.0), ("E", 1.5), ("S", 2.0)]
    assert rows[0].floor_seconds == pytest.approx(4e-6) and rows[1].floor_seconds == 0.0
    for row in rows:
        assert set(row.samples) == {"cuop", "torch"} and len(row.samples["cuop"]) == 7
        assert row.seconds > 0 and np.isnan(row.error)
    assert libraries["cuop"].replays > 0 and libraries["torch"].replays > 0


def test_buffers_are_gone_through_in_turn():
    libraries = {"cuop": Library(), "torch": Library()}
    given, tried = case(sets=3)
    gpu_measure.measure(tried, libraries, Roofs(1e9, 1e12))
    assert given["cuop"][:6] == [0, 1, 2, 0, 1, 2]
    assert set(given["torch"]) == {0, 1, 2}


def test_without_a_gpu_the_suite_says_how_to_do_without():
    done = run_cuop("bench", "--suite", "gpu", CUOP_DEVICE="cpu")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("cuop: ") and "CUOP_DEVICE=cpu" in done.stderr
