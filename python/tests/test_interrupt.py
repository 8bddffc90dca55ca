"""Ctrl-C ends what computes for hours within a second, and what comes after is as before."""

import signal

import pytest
from fresh_process import output_of

_PREPARE = """
import os, signal, threading, time
import numpy as np
import cuop
cuop.set_device("cpu")
endless = cuop.broadcast_to(cuop.ones((1, 1)), (2**20, 2**20))
grid, cross = cuop.ones((64, 64)), cuop.ones((3, 3))
long = cuop.broadcast_to(cuop.ones((1, 1)), (2**17, 2**17))
large = cuop.ones((8000, 8000), dtype="float64")
integers = cuop.ones((4000, 4000), dtype="int64")

def repeat(work):
    while True:
        work()

def layer():
    return cuop.ones((32, 256, 64, 64)), cuop.ones((512, 256, 7, 7))

def sweeps(comm, method="jacobi"):
    from distributed_gpu import MPIManager
    from distributed_gpu.algorithms.stencil import distributed_jacobi_2d
    given = grid if comm.rank == 0 else None
    endless = {"iterations": 2**31, "tol": 0.0}
    distributed_jacobi_2d(given, given, MPIManager(), None, method=method, **endless)

def interrupt():
    global asked
    asked = time.monotonic()
    os.kill(os.getpid(), SIGNAL)

def bare(work, error=KeyboardInterrupt):
    threading.Timer(0.3, interrupt).start()
    try:
        work()
    except error:
        print("heard after", time.monotonic() - asked)
    else:
        print("not heard")
    assert cuop.sum(cuop.ones(1000)).item() == 1000

SIGNAL = signal.SIGINT
signal.signal(SIGNAL, signal.default_int_handler)  # a shell may have it ignored
"""

# What is to be interrupted, behind what it needs.
ENDLESS = {
    "sum": "cuop.sum(endless)",
    "axis": "cuop.mean(endless, axis=0)",
    "exact": "cuop.sum(endless, mode='exact')",
    "fused": "cuop.fuse(lambda x: cuop.sum(cuop.exp(x) * 2.0))(long)",
    "stencil": "cuop.stencil2d(grid, cross, iterations=10**9)",
    "jacobi": "cuop.jacobi2d(grid, grid, iterations=2**31, tol=0.0)",
    "matmul": "cuop.matmul(large, large)",
    "integers": "cuop.matmul(integers, integers)",
    "matrix and vector": "repeat(lambda: cuop.matmul(large, large[0]))",
    "long line": "x = cuop.ones(2**25, dtype='complex128'); cuop.fft.fft(x)",
    "long prime line": "x = cuop.ones(2**23 + 9, dtype='complex128'); cuop.fft.fft(x)",
    "lines across": "x = cuop.ones((2**22, 8), dtype='complex64'); cuop.fft.fft(x, axis=0)",
    "lines": "repeat(lambda: cuop.fft.fft2(large))",
    "conv": "x = layer(); cuop.conv2d(*x)",
    "conv gemm": "x = layer(); cuop.conv2d(*x, variant='gemm')",
    "conv direct": "x = layer(); cuop.conv2d(*x, variant='direct')",
    "one row": "cuop.conv1d(cuop.ones((1, 1, 2**20)), cuop.ones((1, 1, 2**16)), variant='direct')",
    "benchmark": "cuop.benchmark(cuop.add, grid, grid, num_runs=10**9)",
    "ranks": "cuop.dist.run_ranks(lambda comm: cuop.sum(endless), 2)",
    "sweeps of ranks": "cuop.dist.run_ranks(sweeps, 2)",
    "passes of ranks": "cuop.dist.run_ranks(lambda comm: sweeps(comm, 'rb-sor'), 2)",
}


def run(program):
    return output_of(_PREPARE + program)


@pytest.mark.parametrize("name", ENDLESS)
def test_ctrl_c_is_heard(name):
    *before, call = ENDLESS[name].split("; ")
    said = run("\n".join([*before, f"bare(lambda: {call})"]))
    assert said.startswith("heard after")
    assert float(said.split()[-1]) < 8  # 1 s is promised; other processes may take the processor


def test_other_signals_raise_what_their_handlers_raise():
    said = run(
        "class Late(Exception): pass\n"
        "def late(number, frame): raise Late\n"
        "SIGNAL = signal.SIGALRM\n"
        "signal.signal(SIGNAL, late)\n"
        "bare(lambda: cuop.sum(endless), Late)"
    )
    assert said.startswith("heard after")


def test_a_handler_that_returns_ends_nothing():
    said = run(
        "heard = []\n"
        "signal.signal(SIGNAL, lambda number, frame: heard.append(number))\n"
        "wide = cuop.broadcast_to(cuop.ones(1), (2**33,))\n"
        "threading.Timer(0.3, interrupt).start()\n"
        "print(cuop.sum(wide).item() == 2.0**33, heard)"
    )
    assert said == f"True [{int(signal.SIGINT)}]\n"


def test_an_interrupted_value_says_so():
    said = run(
        "signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
        "try:\n"
        "    with cuop.fused():\n"
        "        y = cuop.sum(cuop.exp(long))\n"
        "        signal.setitimer(signal.ITIMER_REAL, 0.3)\n"
        "        try:\n"
        "            y.item()\n"
        "        except KeyboardInterrupt:\n"
        "            print('heard')\n"
        "except cuop.ExecutionError as error:\n"
        "    print(error)\n"
        "try:\n"
        "    y.item()\n"
        "except cuop.ExecutionError as error:\n"
        "    print(error)\n"
    )
    assert said == "heard\n" + "fused: the computation of this value was interrupted\n" * 2


def test_repeated_elements_are_read_once():
    said = run(
        "print(cuop.all(endless).item(), cuop.any(endless).item(), cuop.max(endless).item(),"
        " cuop.min(endless, axis=1).shape, int(cuop.argmax(endless, axis=1)[5]))"
    )
    assert said == "True True 1.0 (1048576,) 0\n"
