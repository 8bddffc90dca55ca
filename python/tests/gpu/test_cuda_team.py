"""The ranks of a plain process on several GPUs: they stay from call to call, and end as they should."""

import os
import subprocess
import sys
import textwrap
from functools import partial

import numpy as np
import pytest
from in_threads import in_threads
from processes import IS_SIMULATED

import cuop
from cuop import dist

A, B = np.random.default_rng(1).random((2, 12, 12))


def product(a, b):
    comm = dist.world()
    a, b = (cuop.tensor(x, device="cuda") for x in (a, b))
    return dist.matmul_from_root(comm, a, b, strategy="row").to_numpy()


def threads():
    return set(os.listdir("/proc/self/task"))


def test_the_threads_of_one_call_serve_the_next_ones():
    for _ in range(2):
        np.testing.assert_allclose(product(A, B), A @ B, rtol=1e-12)
    before = threads()
    for _ in range(3):
        np.testing.assert_allclose(product(B, A), B @ A, rtol=1e-12)
    assert threads() == before


def test_callers_on_several_threads():
    def call(seed):
        a, b = np.random.default_rng(seed).random((2, 9, 9))
        for _ in range(5):
            np.testing.assert_allclose(product(a, b), a @ b, rtol=1e-12)

    in_threads(*(partial(call, seed) for seed in range(6)))


BEGINNING = """
import os, signal, sys, threading, time
import numpy as np
import cuop
from cuop import dist
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
x = cuop.tensor(np.ones((12, 12)), device="cuda")
def call():
    return dist.matmul_from_root(dist.world(), x, x, strategy="row").to_numpy()
assert (call() == 12).all()
"""

PROGRAMS = {
    "ctrl-c": """
        timer = threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT])
        timer.start()
        try:
            dist.jacobi_2d_from_root(
                dist.world(), x, x, iterations=10**12, tol=0.0, strategy="row"
            )
        except KeyboardInterrupt:
            pass
        else:
            raise AssertionError("nobody was interrupted")
        assert (call() == 12).all()
    """,
    "the end amid calls": """
        begun = threading.Semaphore(0)
        def run():
            call()
            begun.release()
            while True:
                call()
        for _ in range(2):
            threading.Thread(target=run, daemon=True).start()
        for _ in range(2):
            begun.acquire()
    """,
    "the end with ranks that wait": "",
}


def run(program):
    done = subprocess.run(
        [sys.executable, "-c", BEGINNING + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_process_goes_on_and_ends(name):
    run(PROGRAMS[name])


@pytest.mark.skipif(
    IS_SIMULATED or cuop.device_count("cuda") < 2,
    reason="needs two CUDA GPUs; a simulated one multiplies for a minute to be measured",
)
def test_calls_are_planned_with_what_the_gpus_have_measured():
    run(
        """
        gpus = cuop.device_count("cuda")
        assumed = dist.last_report().plan.call_seconds
        figures = dist.run_ranks(lambda comm: dist.calibrate(comm, again=True), gpus)[0]
        assert figures.call_overhead != assumed
        assert (call() == 12).all()
        assert dist.last_report().plan.call_seconds == figures.call_overhead
        """
    )
