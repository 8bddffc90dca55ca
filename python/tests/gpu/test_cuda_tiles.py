"""Arrays of the host through the GPU in tiles, alone and beside a process that takes its memory."""

import shutil
import subprocess
import sys

import fresh_process
import numpy as np
import pytest
from processes import IS_SIMULATED

import cuop
from cuop import dist, executor
from distributed_gpu._arrays import narrow_wire

# Takes up to all of the memory that is free, gives it back, and again, at random.
NEIGHBOUR = """
import random, time
import cuop

rng, held = random.Random(1), []
end = time.monotonic() + 300
while time.monotonic() < end:
    free, _ = cuop.memory_info("cuda")
    try:
        held.append(cuop.empty((int(rng.uniform(0.2, 1.0) * free) + 1,), "uint8", "cuda"))
    except cuop.MemoryError:
        pass
    print("took", flush=True)
    time.sleep(rng.uniform(0.0, 0.03))
    if rng.random() < 0.6:
        held.clear()
        cuop.empty_cache()
    time.sleep(rng.uniform(0.0, 0.03))
"""


@pytest.fixture(autouse=True)
def on_the_gpu():
    cuop.set_current_device("cuda")


@pytest.fixture
def neighbour():
    process = subprocess.Popen([sys.executable, "-c", NEIGHBOUR], stdout=subprocess.PIPE)
    process.stdout.readline()
    yield process
    assert process.poll() is None, "the neighbour has ended"
    process.kill()
    process.wait()


def noise(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


@pytest.mark.parametrize("limit_mib", [0.25, 1, 8])
def test_tiles_of_the_gpu_are_those_of_numpy(limit_mib):
    x, y = noise(1, 700, 513), noise(2, 513, 390)
    made, report = executor.run(
        dist.world(), executor.matmul(), [x, y], memory_limit=int(limit_mib * 2**20)
    )
    assert str(report.device).startswith("cuda")
    assert report.peak <= limit_mib * 2**20
    np.testing.assert_allclose(np.asarray(made), x.astype("f8") @ y, rtol=0, atol=2e-4)
    lines = noise(3, 900, 512) + 1j * noise(4, 900, 512)
    made, report = executor.run(
        dist.world(), executor.fft(), [lines], memory_limit=int(limit_mib * 2**20)
    )
    assert report.plan.tiles > 1 or limit_mib == 8
    np.testing.assert_allclose(np.asarray(made), np.fft.fft(lines), rtol=0, atol=1e-3)


@pytest.mark.skipif(IS_SIMULATED, reason="products of this size take minutes there")
@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16", "wire", "rows of odd lengths"])
def test_large_products_hold_what_they_promise(kind):
    """With parts of float32 operands, workspaces and rows that are filled up, of every size of memory."""
    m, k, n = (3001, 2003, 3005) if kind == "rows of odd lengths" else (4096, 2048, 3072)
    x, y = noise(1, m, k), noise(2, k, n)
    dtype = {"float64": "float64", "bfloat16": "bfloat16", "rows of odd lengths": "bfloat16"}.get(
        kind
    )
    a, b = (cuop.asarray(each, dtype=dtype or "float32", device="cpu") for each in (x, y))
    operation = (
        executor.matmul(narrow_wire("float16", "matmul")) if kind == "wire" else executor.matmul()
    )
    for limit_mib in (16, 48, 200, 2000, None):
        limit = None if limit_mib is None else limit_mib * 2**20
        made, report = executor.run(dist.world(), operation, [a, b], memory_limit=limit)
        assert report.halvings == 0, report.plan
        assert report.peak <= report.plan.memory, report.plan
        tolerance = 1 if kind not in ("float32", "float64") else 1e-3
        error = np.abs(cuop.asarray(made, dtype="float64").numpy() - x.astype("f8") @ y).max()
        assert error < tolerance, (limit_mib, error)


@pytest.mark.skipif(IS_SIMULATED, reason="simulated GPUs are each process's own")
def test_a_neighbour_that_takes_and_frees_memory_fails_nothing(neighbour):
    a, b = noise(5, 4096, 1500), noise(6, 1500, 4096)
    expected = a.astype("f8") @ b
    halvings = 0
    for run in range(50):
        made, report = executor.run(dist.world(), executor.matmul(), [a, b], least_tiles=8)
        error = np.abs(np.asarray(made) - expected).max()
        assert error < 5e-4, (run, error)
        halvings += report.halvings
    print(f"tiles were halved {halvings} times")


# Boxes that are long enough to be read by several threads, in memory of rank 0's process.
OF_RANK_0 = """
import numpy as np

from distributed_gpu.auto_executor import AutoExecutor

auto = AutoExecutor(verbose=False)
x = np.random.default_rng(0).standard_normal((2500, 1201))
given = [x] if auto.is_master else [None]
turned, sums = auto.transpose(*given), auto.sum(*given, dim=1)
if auto.is_master:
    np.testing.assert_array_equal(turned, x.T)
    np.testing.assert_allclose(sums, x.sum(1), rtol=1e-12, atol=1e-12)
assert str(auto.last_report.device).startswith("cuda"), auto.last_report.device
print("passed", flush=True)
"""


def test_gpus_of_other_processes_read_the_arrays_where_they_lie():
    if shutil.which("mpirun") is None or dist.mpi_unavailable_reason():
        pytest.skip(f"NO MPI HERE: {dist.mpi_unavailable_reason()}")
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2", sys.executable]
    done = fresh_process.run([*command, "-c", OF_RANK_0], {"CUOP_DEVICE": "cuda"}, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["passed"] * 2
