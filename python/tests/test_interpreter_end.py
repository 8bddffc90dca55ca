"""Daemon threads that compute while the interpreter ends: the process ends as if they were not."""

import sys

import pytest
from fresh_process import run

pytestmark = pytest.mark.cpu

# Each loop is run by two threads; the main thread ends in the middle of it.
LOOPS = {
    "elementwise": "(big * 2 + big).sum()",
    "matmul": "cuop.matmul(x, x)",
    "large matmul": "cuop.matmul(large, large)",
    "memory of NumPy": "cuop.asarray(np.ones(50000)) * 2",
    "fusion": "fused()",
    "ranks": "cuop.dist.run_ranks(rank, 2)",
    "lists": "cuop.tensor([[1.0, 2, 3]] * 50); cuop.stack([big, big]); repr(x)",
    "callbacks": "cuop.stack([Slow(), Slow()]); cuop.benchmark(busy, num_runs=2, warmup_runs=0)",
    "errors": "raising()",
    "transforms": "cuop.fft.fft(big); cuop.sort(big); cuop.conv2d(images, weight)",
    "operators": "cuop.JITReluFloat().forward(x, cuop.empty_like(x)); cuop.softmax(x)",
    "exchange": "cuop.from_dlpack(np.from_dlpack(x)); memoryview(x); np.asarray(x.T)",
    "memory": "cuop.memory_stats(); cuop.empty_cache(); cuop.zeros((1000,))",
}

PROGRAM = """
import sys, threading, time
import numpy as np
import cuop

x = cuop.asarray(np.ones((300, 300), np.float32))
large = cuop.ones((1500, 1500))
big = cuop.asarray(np.ones(200_000, np.float32))
images, weight = cuop.ones((1, 8, 32, 32)), cuop.ones((4, 8, 3, 3))
started = threading.Semaphore(0)

class Slow:
    def __array__(self, dtype=None, copy=None):
        for i in range(200):
            pass
        return np.ones(3, np.float32)

def busy():
    sum(range(100))

def fused():
    with cuop.fused():
        y = ((big * 2 + 1) * big).sum()
    float(y)

def rank(comm):
    for i in range(5):
        comm.all_gather(i)
        cuop.sum(big)

def raising():
    for call in (lambda: cuop.zeros(3) + cuop.zeros(4), lambda: cuop.tensor("x")):
        try:
            call()
        except cuop.Error:
            pass

def run(body):
    body()
    started.release()
    while True:
        body()

bodies = eval(sys.argv[1])
for body in bodies:
    threading.Thread(target=run, args=(body,), daemon=True).start()
for body in bodies:
    started.acquire()
time.sleep(float(sys.argv[2]))
"""


def end_amid(loops, seconds):
    bodies = ", ".join(f"lambda: ({loop.replace('; ', ', ')})" for loop in loops)
    return run([sys.executable, "-c", PROGRAM, f"[{bodies}]", str(seconds)])


@pytest.mark.parametrize("name", LOOPS)
def test_one_kind_of_work(name):
    done = end_amid([LOOPS[name]] * 2, 0.02)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("run", range(4))
def test_all_kinds_at_once(run):
    done = end_amid(LOOPS.values(), 0.01 * run)
    assert (done.returncode, done.stderr) == (0, "")
