"""Fresh processes for tests of what happens once in each, and of machines that lack something."""

import pytest
from fresh_process import run_with

import cuop

IS_SIMULATED = cuop.device_count("cuda") > 0 and "simulated" in cuop.device_description("cuda")
simulated = pytest.mark.skipif(not IS_SIMULATED, reason="needs the simulated driver")


def python(code, **variables):
    """What a fresh process prints: (stdout, stderr); CUOP_DEVICE is unset unless it is given."""
    done = run_with(variables, code, unset=["CUOP_DEVICE"], timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n"), done.stderr
