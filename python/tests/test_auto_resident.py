"""Resident memory of AutoExecutor on data ten times as large as what it may use."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from default_device import DEVICES
from resident_script import CALLS, LIMIT
from test_auto_limits import calls

SCRIPT = Path(__file__).with_name("resident_script.py")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_method_takes_more_than_it_may(tmp_path):
    """Of the process's own: the result, an array that takes turns with it, and the limit."""
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    assert (
        {each["op"] for each in figures} == set(CALLS) == {call[0] for call in calls("f8").values()}
    )
    for each in figures:
        assert each["data"] >= 9 * LIMIT, each
        assert each["counted"] <= each["promised"] <= LIMIT, each
        # On its way to a GPU, of whose memory the limit is one, what fits there is in the host's too.
        assert each["own"] <= each["arrays"] + DEVICES * LIMIT, each
