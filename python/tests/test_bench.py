"""The benchmark's table: when a goal is reached, even or missed, and what is written down."""

import json
from statistics import median

import pytest

from cuop.bench import table
from cuop.bench.measure import Row


def row(ours, theirs, goal=1.0):
    return Row(
        "case", "float32", median(ours), "peer", median(theirs), goal, 0.5, 1e-7,
        {"cuop": ours, "peer": theirs},
    )  # fmt: skip


STEADY = [1.0, 1.001, 0.999, 1.0, 1.0, 1.001, 0.999]
NOISY = [1.0, 1.06, 0.94, 0.99, 1.01, 1.05, 0.95]


def test_without_a_goal_it_is_said_which_is_faster():
    assert row(STEADY, [2 * t for t in STEADY], goal=0.0).verdict == "faster"
    assert row(STEADY, [t / 2 for t in STEADY], goal=0.0).verdict == "slower"


def test_a_goal_is_reached_by_the_ratio_of_the_medians():
    assert row(STEADY, [2 * t for t in STEADY], goal=2.0).verdict == "reached"
    assert row(STEADY, [2 * t for t in STEADY], goal=2.0).ratio == pytest.approx(2.0)


def test_noise_makes_a_small_gap_even_and_steady_samples_do_not():
    assert row(NOISY, [0.98 * t for t in NOISY]).verdict == "even"
    assert row(STEADY, [0.98 * t for t in STEADY]).verdict == "MISSED"


def test_a_gap_of_a_hundredth_is_even_without_noise_too():
    assert row(STEADY, [0.99 * t for t in STEADY]).verdict == "even"
    assert row(STEADY, [0.98 * t for t in STEADY]).verdict == "MISSED"


def test_noise_never_excuses_a_wide_gap():
    wide = [0.5, 1.5, 1.0, 0.7, 1.3, 1.0, 1.0]
    missed = row(wide, [0.9 * t for t in wide])
    assert missed.ratio_interval[1] > 1.0
    assert missed.verdict == "MISSED" and not missed.is_reached


def test_the_interval_is_the_ratio_without_samples():
    bare = Row("case", "-", 1.0, "bound", 0.9, 1.0, 0.0, float("nan"))
    assert bare.ratio_interval == (0.9, 0.9) and bare.verdict == "MISSED"


def test_the_written_table_counts_losses_and_keeps_samples(tmp_path):
    rows = [row(STEADY, STEADY), row(NOISY, [0.98 * t for t in NOISY]), row(STEADY, [0.5] * 7)]
    path = tmp_path / "table.md"
    table.write(path, rows, {"title": "a run", "command": "cuop bench"})
    text = path.read_text()
    assert "- command: cuop bench" in text and "| MISSED |" in text and "| even |" in text
    assert "2 of 3 goals reached, 1 of them evenly." in text
    kept = json.loads(path.with_suffix(".json").read_text())
    assert kept["rows"][0]["samples"]["cuop"] == STEADY
