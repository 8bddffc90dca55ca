"""Fresh processes for tests of what happens once in each, and of machines that lack something."""

import os
import subprocess
import sys

import pytest

import cuop

IS_SIMULATED = cuop.device_count("cuda") > 0 and "simulated" in cuop.device_description("cuda")
simulated = pytest.mark.skipif(not IS_SIMULATED, reason="needs the simulated driver")


def python(code, **variables):
    """What a fresh process prints: (stdout, stderr); CUOP_DEVICE is unset unless it is given."""
    inherited = {key: value for key, value in os.environ.items() if key != "CUOP_DEVICE"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=inherited | variables,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n"), done.stderr
